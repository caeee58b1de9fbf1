"""One LSTM layer over a fixed number of unroll steps, with a hand-written gradient.

Automatic differentiation would form each weight gradient as a sum of one small product a step. Here the backward pass
keeps the per-step gradients and forms each weight gradient as one product over all steps. Letter for shapes: R
directions.
"""

from collections.abc import Callable
from dataclasses import dataclass

from toolkit.bilm.backend import tf
from toolkit.bilm.compiled import compiled
from toolkit.bilm.lstm import clip, gates
from toolkit.bilm.spec import BiLMSpec

LARGE = 512  # cells from which on products outweigh the cost of starting them
Layer = Callable[..., tuple[tf.Tensor, tf.Tensor, tf.Tensor]]


@dataclass(frozen=True)
class _Kept:
    """What the forward pass of a chain leaves for the backward pass, a tensor a step: [G, B, …] each."""

    inputs: list[tf.Tensor]  # [x; h] before each step and behind the last one
    gates: list[tuple[tf.Tensor, ...]]  # activated i, j, f, o
    cells: list[tf.Tensor]  # before each step and behind the last one
    unprojected: list[tf.Tensor]


def training_layer(spec: BiLMSpec, unroll_steps: int, dtype: tf.DType) -> Layer:
    """Return the function of one layer.

    Args:
        spec: the shape of the biLM.
        unroll_steps: T, fixed.
        dtype: of products and of what is kept for the backward pass; cells and sums stay float32.

    Returns:
        a function (x [T, R, B, P], c [R, B, D] float32, h [R, B, P], kernel, bias, projection) that gives the outputs
        [T, R, B, P] without the residual and both final states. x, h, kernel, projection are of `dtype`; projection
        is left out where P = D. Its gradient reaches x and the weights; the incoming states are constants, since
        back-propagation is truncated there.
    """
    p = spec.projection_dim
    bound = spec.proj_clip if spec.has_projection else None
    # Directions as chains of their own let one chain's gates run beside the other's products; measured on two cores
    # that gains a tenth in bfloat16 and loses a tenth in float32, where two products side by side fill the caches.
    # Small layers spend their time on starting operations, of which one chain has half as many.
    chains = 2 if dtype == tf.bfloat16 and spec.dim >= LARGE else 1

    @compiled
    def step(z: tf.Tensor, bias: tf.Tensor, c: tf.Tensor) -> tuple[tf.Tensor, ...]:
        *activated, c, m = gates(tf.cast(z, tf.float32) + bias, c, spec.cell_clip)
        return *(tf.cast(gate, dtype) for gate in activated), c, tf.cast(m, dtype)

    @compiled
    def step_gradient(
        gates: tuple[tf.Tensor, ...], before: tf.Tensor, c: tf.Tensor, dm: tf.Tensor, dc: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        i, j, f, o = (tf.cast(gate, tf.float32) for gate in gates)
        dm, tanh_c = tf.cast(dm, tf.float32), tf.tanh(c)
        dc = _through_clip(c, dc + dm * o * (1.0 - tanh_c**2), spec.cell_clip)
        parts = [dc * j * i * (1 - i), dc * i * (1 - j**2), dc * before * f * (1 - f), dm * tanh_c * o * (1 - o)]
        return tf.cast(tf.concat(parts, -1), dtype), dc * f

    @compiled
    def next_input(x: tf.Tensor, h: tf.Tensor) -> tf.Tensor:
        return tf.concat([x, clip(h, bound)], -1)

    @compiled
    def output_gradient(following: tf.Tensor, from_above: tf.Tensor, d_following: tf.Tensor) -> tf.Tensor:
        return _through_clip(following[..., p:], from_above + d_following[..., p:], bound)

    def forward(xs: list[tf.Tensor], c: tf.Tensor, h: tf.Tensor, kernel, bias, *projection) -> _Kept:
        kept = _Kept([tf.concat([xs[0], h], -1)], [], [c], [])
        for x in [*xs[1:], tf.zeros_like(xs[0])]:
            *gates, c, m = step(tf.matmul(kept.inputs[-1], kernel), bias[:, None], kept.cells[-1])
            kept.gates.append(tuple(gates))
            kept.cells.append(c)
            kept.unprojected.append(m)
            kept.inputs.append(next_input(x, tf.matmul(m, projection[0]) if projection else m))
        return kept

    def backward(kept: _Kept, d_outputs: list[tf.Tensor], kernel: tf.Tensor, *projection: tf.Tensor) -> tuple:
        d_input, dc = tf.zeros_like(kept.inputs[0]), tf.zeros_like(kept.cells[0])
        dxs, dzs, dhs = [], [], []
        for t in reversed(range(unroll_steps)):
            dh = output_gradient(kept.inputs[t + 1], d_outputs[t], d_input)
            dm = tf.matmul(dh, projection[0], transpose_b=True) if projection else dh
            dz, dc = step_gradient(kept.gates[t], kept.cells[t], kept.cells[t + 1], dm, dc)
            d_input = tf.matmul(dz, kernel, transpose_b=True)
            dhs.insert(0, dh)
            dzs.insert(0, dz)
            dxs.insert(0, d_input[..., :p])
        dz = tf.concat(dzs, 1)
        # The sum over rows as a product with ones (8 of them, a size that products like).
        ones = tf.ones([dz.shape[0], 8, dz.shape[1]], dtype)
        gradients = [
            tf.stack(dxs),
            tf.matmul(tf.concat(kept.inputs[:-1], 1), dz, transpose_a=True),
            tf.cast(tf.matmul(ones, dz)[:, 0], tf.float32),
        ]
        if projection:
            gradients.append(tf.matmul(tf.concat(kept.unprojected, 1), tf.concat(dhs, 1), transpose_a=True))
        return tuple(gradients)

    @tf.custom_gradient
    def layer(x: tf.Tensor, c: tf.Tensor, h: tf.Tensor, *weights: tf.Tensor):
        number = min(chains, h.shape[0])
        xs, cs, hs = tf.split(x, number, 1), tf.split(c, number), tf.split(h, number)
        parts = list(zip(*(tf.split(weight, number) for weight in weights), strict=True))
        kept = [forward(tf.unstack(xs[n], unroll_steps), cs[n], hs[n], *parts[n]) for n in range(number)]
        outputs = tf.concat([tf.stack([behind[..., p:] for behind in chain.inputs[1:]]) for chain in kept], 1)

        def gradient(d_outputs: tf.Tensor, d_cell: tf.Tensor, d_last: tf.Tensor) -> tuple:
            del d_cell, d_last  # the states leave the graph: truncated back-propagation
            ds = tf.split(d_outputs, number, 1)
            done = [
                backward(kept[n], tf.unstack(ds[n], unroll_steps), kernel, *projection)
                for n, (kernel, _, *projection) in enumerate(parts)
            ]
            dx, *d_weights = zip(*done, strict=True)
            return tf.concat(dx, 1), None, None, *(tf.concat(d_weight, 0) for d_weight in d_weights)

        return (outputs, tf.concat([chain.cells[-1] for chain in kept], 0), outputs[-1]), gradient

    return layer


def _through_clip(value: tf.Tensor, gradient: tf.Tensor, bound: float | None) -> tf.Tensor:
    """The gradient in front of a clip, given the clipped value: zero where it was cut."""
    if bound is None:
        return gradient
    return tf.where(tf.abs(value) >= tf.cast(bound, value.dtype), tf.zeros_like(gradient), gradient)
