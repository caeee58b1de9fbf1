"""LSTM with projection and clipping, its directions side by side: weights, one step's arithmetic, and inference.

Letter for shapes: R directions, 2, or 1 of a forward model.
"""

from collections.abc import Callable

import numpy as np

from toolkit.bilm.backend import tf
from toolkit.bilm.spec import BiLMSpec


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


def gates(
    z: tf.Tensor, c: tf.Tensor, cell_clip: float | None, sigmoid: Callable[[tf.Tensor], tf.Tensor] = tf.sigmoid
) -> tuple[tf.Tensor, ...]:
    """The element-wise part of one LSTM step (design of TensorFlow's LSTMCell, gates in the order i, j, f, o).

    Args:
        z: float32 [R, B, 4D], kernel product plus bias.
        c: float32 [R, B, D], the cell before the step.
        cell_clip: see `BiLMSpec`.
        sigmoid: the form of it that is fastest where this runs.

    Returns:
        the four activated gates, the cell behind the step and the output before projection, each [R, B, D].
    """
    i, j, f, o = tf.split(z, 4, -1)
    i, j, f, o = sigmoid(i), tf.tanh(j), sigmoid(f + 1.0), sigmoid(o)
    c = clip(f * c + i * j, cell_clip)
    return i, j, f, o, c, o * tf.tanh(c)


def run_layer(
    layer: LSTMLayer, spec: BiLMSpec, x: tf.Tensor, mask: tf.Tensor, c: tf.Tensor, h: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Run one layer over padded sequences, all directions at once.

    Args:
        x: float32 [T, R, B, P], the backward half already reversed over each true length.
        mask: bool [T, B, 1], false at padding: states pass it unchanged, outputs are zero there.
        c, h: float32 [R, B, D] and [R, B, P], the states to start from.

    Returns:
        outputs [T, R, B, P] without the residual, and the two states behind each sequence's last token.
    """
    r, d, p = spec.directions, spec.dim, spec.projection_dim
    outputs = tf.TensorArray(tf.float32, tf.shape(x)[0], element_shape=[r, None, p])
    bias = layer.bias[:, None]

    def step(t: tf.Tensor, c: tf.Tensor, h: tf.Tensor, outputs: tf.TensorArray) -> tuple:
        z = tf.matmul(tf.concat([x[t], h], -1), layer.kernel) + bias
        *_, new_c, m = gates(z, c, spec.cell_clip)
        # Without a projection there is nothing that proj_clip would clip, as in TensorFlow's LSTMCell.
        new_h = m if layer.projection is None else clip(tf.matmul(m, layer.projection), spec.proj_clip)
        keep = mask[t]
        outputs = outputs.write(t, tf.where(keep, new_h, 0.0))
        return t + 1, tf.where(keep, new_c, c), tf.where(keep, new_h, h), outputs

    length = tf.shape(x)[0]
    shapes = (tf.TensorShape([]), tf.TensorShape([r, None, d]), tf.TensorShape([r, None, p]))
    _, c, h, outputs = tf.while_loop(
        lambda t, *_: t < length, step, (0, c, h, outputs), shape_invariants=(*shapes, tf.TensorShape(None))
    )
    return outputs.stack(), c, h


def _glorot(rng: np.random.Generator, directions: int, rows: int, columns: int) -> np.ndarray:
    bound = (6.0 / (rows + columns)) ** 0.5
    return rng.uniform(-bound, bound, (directions, rows, columns)).astype(np.float32)
