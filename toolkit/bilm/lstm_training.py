"""One LSTM layer over a fixed number of unroll steps, with a hand-written gradient.

Automatic differentiation would form each weight gradient as a sum of one small product a step. Here the backward pass
keeps the per-step gradients and forms each weight gradient as one product over all steps.
"""

from collections.abc import Callable

from toolkit.bilm.backend import tf
from toolkit.bilm.compiled import compiled
from toolkit.bilm.lstm import clip, gates
from toolkit.bilm.spec import BiLMSpec

Layer = Callable[..., tuple[tf.Tensor, tf.Tensor, tf.Tensor]]


def training_layer(spec: BiLMSpec, unroll_steps: int, dtype: tf.DType) -> Layer:
    """Return the function of one layer.

    Args:
        spec: the shape of the biLM.
        unroll_steps: T, fixed.
        dtype: of products and of what is kept for the backward pass; cells and sums stay float32.

    Returns:
        a function (x [T, 2, B, P], c [2, B, D] float32, h [2, B, P], kernel, bias, projection) that gives the outputs
        [T, 2, B, P] without the residual and both final states. x, h, kernel, projection are of `dtype`; projection
        is left out where P = D. Its gradient reaches x and the weights; the incoming states are constants, since
        back-propagation is truncated there.
    """
    p = spec.projection_dim

    @compiled
    def step(z: tf.Tensor, bias: tf.Tensor, c: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        i, j, f, o, c, m = gates(tf.cast(z, tf.float32) + bias, c, spec.cell_clip)
        return tf.cast(tf.concat([i, j, f, o], -1), dtype), c, tf.cast(m, dtype)

    @compiled
    def step_gradient(kept: tf.Tensor, before: tf.Tensor, c: tf.Tensor, dm: tf.Tensor, dc: tf.Tensor) -> tuple:
        i, j, f, o = tf.split(tf.cast(kept, tf.float32), 4, -1)
        dm, tanh_c = tf.cast(dm, tf.float32), tf.tanh(c)
        dc = _through_clip(c, dc + dm * o * (1.0 - tanh_c**2), spec.cell_clip)
        parts = [dc * j * i * (1 - i), dc * i * (1 - j**2), dc * before * f * (1 - f), dm * tanh_c * o * (1 - o)]
        return tf.cast(tf.concat(parts, -1), dtype), dc * f

    @compiled
    def output_gradient(h: tf.Tensor, from_above: tf.Tensor, from_next: tf.Tensor) -> tf.Tensor:
        return _through_clip(h, from_above + from_next, spec.proj_clip if spec.has_projection else None)

    @compiled
    def bounded(h: tf.Tensor) -> tf.Tensor:
        return clip(h, spec.proj_clip)

    @tf.custom_gradient
    def layer(x: tf.Tensor, c: tf.Tensor, h: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor, *projection: tf.Tensor):
        cells, outputs, inputs, kept, ms = [c], [h], [], [], []
        for x_t in tf.unstack(x, unroll_steps):
            inputs.append(tf.concat([x_t, outputs[-1]], -1))
            gate, c, m = step(tf.matmul(inputs[-1], kernel), bias[:, None], cells[-1])
            outputs.append(bounded(tf.matmul(m, projection[0])) if projection else m)
            kept.append(gate)
            cells.append(c)
            ms.append(m)

        def gradient(d_outputs: tf.Tensor, d_cell: tf.Tensor, d_last: tf.Tensor) -> tuple:
            del d_cell, d_last  # the states leave the graph: truncated back-propagation
            dh, dc = tf.zeros_like(h), tf.zeros_like(cells[0])
            above, dzs, dhs, dxs = tf.unstack(d_outputs, unroll_steps), [], [], []
            for t in reversed(range(unroll_steps)):
                dh = output_gradient(outputs[t + 1], above[t], dh)
                dm = tf.matmul(dh, projection[0], transpose_b=True) if projection else dh
                dhs.append(dh)
                dz, dc = step_gradient(kept[t], cells[t], cells[t + 1], dm, dc)
                dzs.append(dz)
                d_input = tf.matmul(dz, kernel, transpose_b=True)
                dxs.append(d_input[..., :p])
                dh = d_input[..., p:]
            dz = _joined(dzs[::-1])
            weights = [tf.matmul(_joined(inputs), dz, transpose_a=True), tf.reduce_sum(tf.cast(dz, tf.float32), 1)]
            if projection:
                weights.append(tf.matmul(_joined(ms), _joined(dhs[::-1]), transpose_a=True))
            return tf.stack(dxs[::-1]), None, None, *weights

        return (tf.stack(outputs[1:]), cells[-1], outputs[-1]), gradient

    return layer


def _through_clip(value: tf.Tensor, gradient: tf.Tensor, bound: float | None) -> tf.Tensor:
    """The gradient in front of a clip, given the clipped value: zero where it was cut."""
    if bound is None:
        return gradient
    return tf.where(tf.abs(value) >= tf.cast(bound, value.dtype), tf.zeros_like(gradient), gradient)


def _joined(steps: list[tf.Tensor]) -> tf.Tensor:
    """T tensors [2, B, K] as one [2, T·B, K]."""
    return tf.concat(steps, 1)
