"""LSTM with projection and clipping, its directions side by side: weights, one step's arithmetic, and inference.

Letter for shapes: R directions, 2, or 1 of a forward model.
"""

from collections.abc import Callable

import numpy as np

from toolkit.bilm.backend import tf
from toolkit.bilm.compiled import logistic
from toolkit.bilm.spec import BiLMSpec

Lookup = tuple[tf.Tensor, tf.Tensor]  # vectors times a layer's input rows [R, n, 4D], and which comes where [T, R, B]
Restart = tuple[tf.Tensor, tf.Tensor, tf.Tensor]  # which rows start anew at which step, and the states they start from


class LSTMLayer(tf.Module):
    """The weights of one layer, forward direction first.

    Attributes:
        kernel: [R, 2P, 4D]; rows are input then recurrent output, columns the gates i, j, f, o.
        bias: [R, 4D]; the forget gate's +1 is not in it, it is added at run time as in the published layout.
        projection: [R, D, P], None where P = D.
    """

    def __init__(
        self, spec: BiLMSpec, rng: np.random.Generator, variable: Callable[..., tf.Variable] = tf.Variable
    ) -> None:
        super().__init__()
        r, d, p = spec.directions, spec.dim, spec.projection_dim
        self.kernel = variable(_glorot(rng, r, 2 * p, 4 * d), name="kernel")
        self.bias = variable(tf.zeros([r, 4 * d]), name="bias")
        self.projection = variable(_glorot(rng, r, d, p), name="projection") if spec.has_projection else None


def clip(x: tf.Tensor, bound: float | None) -> tf.Tensor:
    """Clip to ±bound; None leaves x as it is."""
    return x if bound is None else tf.clip_by_value(x, tf.cast(-bound, x.dtype), tf.cast(bound, x.dtype))


def gates(z: tf.Tensor, c: tf.Tensor, cell_clip: float | None) -> tuple[tf.Tensor, ...]:
    """The element-wise part of one LSTM step (design of TensorFlow's LSTMCell, gates in the order i, j, f, o).

    Args:
        z: float32 [..., 4D], kernel product plus bias.
        c: float32 [..., D], the cell before the step.
        cell_clip: see `BiLMSpec`.

    Returns:
        the four activated gates, the cell behind the step and the output before projection, each [..., D].
    """
    i, j, f, o = tf.split(z, 4, -1)
    i, j, f, o = logistic(i), tf.tanh(j), logistic(f + 1.0), logistic(o)
    c = clip(f * c + i * j, cell_clip)
    return i, j, f, o, c, o * tf.tanh(c)


def run_layer(
    x: tf.Tensor | Lookup,
    states: tuple[tf.Tensor, tf.Tensor],
    weights: tuple[tf.Tensor, ...],
    spec: BiLMSpec,
    restart: Restart | None = None,
    wrap: Callable[[Callable], Callable] = lambda function: function,
) -> tuple[tf.Tensor, tuple[tf.Tensor, tf.Tensor]]:
    """Run one layer over sequences, each direction as a recurrence of its own: gates run beside the other's products.

    Args:
        x: [T, R, B, P] in the dtype of the products, the backward half reversed already; or, for vectors that come
            again, their products and places.
        states: cells float32 [R, B, D] and outputs [R, B, P] to start from.
        weights: kernel [R, 2P, 4D] (beside products, only its recurrent rows), bias float32 [R, 4D] and, where there is
            one, projection [R, D, P].
        spec: the shape of the biLM.
        restart: the steps bool [T, B] that a row takes from other states, and these, cells float32 [R, 1, D] and
            outputs float32 [R, 1, P].
        wrap: is applied to the element-wise pieces; `compiled` makes them fast for batches that come again.

    Returns:
        outputs [T, R, B, P] without the residual, in the dtype of x, and the states behind the last step: where a
        sequence is shorter than T, padded behind, its outputs are right and its states are not.
    """
    products, places = x if isinstance(x, tuple) else (None, x)
    time, dtype, d, p = tf.shape(places)[0], weights[0].dtype, spec.dim, spec.projection_dim
    # Without a projection there is nothing that proj_clip would clip, as in TensorFlow's LSTMCell.
    bound = spec.proj_clip if spec.has_projection else None

    @wrap
    def enter(x: list[tf.Tensor], h: tf.Tensor, *restart: tf.Tensor) -> tf.Tensor:
        return tf.concat([*x, _restarted(h, *restart)], -1)

    @wrap
    def cell(z: list[tf.Tensor], bias: tf.Tensor, c: tf.Tensor, *restart: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        total = bias
        for part in z:
            total += tf.cast(part, tf.float32)
        *_, c, m = gates(total, _restarted(c, *restart), spec.cell_clip)
        return c, tf.cast(m, dtype)

    xs = tf.unstack(places, spec.directions, 1)
    kernels, biases, *projections = (tf.unstack(weight, spec.directions) for weight in weights)

    def anew(t: tf.Tensor, direction: int, part: int) -> tuple[tf.Tensor, ...]:
        return (restart[0][t], restart[part][direction]) if restart else ()

    def step(t: tf.Tensor, directions: list[tuple]) -> tuple:
        following = []
        for n, (c, h, written) in enumerate(directions):
            entering = enter([xs[n][t]] if products is None else [], h, *anew(t, n, 2))
            z = [tf.matmul(entering, kernels[n]), *([] if products is None else [tf.gather(products[n], xs[n][t])])]
            c, m = cell(z, biases[n], c, *anew(t, n, 1))
            h = clip(tf.matmul(m, projections[0][n]) if projections else m, bound)
            following.append((c, h, written.write(t, h)))
        return t + 1, following

    start = [
        (c, tf.cast(h, dtype), tf.TensorArray(dtype, time, element_shape=[None, p]))
        for c, h in zip(*(tf.unstack(part, spec.directions) for part in states), strict=True)
    ]
    shapes = [(tf.TensorShape([None, d]), tf.TensorShape([None, p]), tf.TensorShape(None))] * spec.directions
    _, ended = tf.while_loop(lambda t, _: t < time, step, (0, start), shape_invariants=(tf.TensorShape([]), shapes))
    cells, outputs, written = zip(*ended, strict=True)
    return tf.stack([array.stack() for array in written], 1), (tf.stack(cells), tf.stack(outputs))


def _restarted(value: tf.Tensor, rows: tf.Tensor | None = None, start: tf.Tensor | None = None) -> tf.Tensor:
    return value if rows is None else tf.where(rows[:, None], tf.cast(start, value.dtype), value)


def _glorot(rng: np.random.Generator, directions: int, rows: int, columns: int) -> np.ndarray:
    bound = (6.0 / (rows + columns)) ** 0.5
    return rng.uniform(-bound, bound, (directions, rows, columns)).astype(np.float32)
