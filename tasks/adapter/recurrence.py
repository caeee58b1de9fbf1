"""A bidirectional LSTM layer that is quick on a CPU: one product for all inputs, a compiled recurrence, its gradient.

Keras runs a masked LSTM as a loop of many small operations. Here XLA compiles the recurrence of both directions, and a
hand-written gradient forms each weight gradient as one product over all steps. XLA compiles once a shape, so time is
padded to a power of two and the batch to a multiple of `ROWS`; the loop runs to the longest sentence only.
"""

from functools import partial

import numpy as np

from toolkit.bilm.backend import tf
from toolkit.bilm.compiled import compiled, product_dtype
from toolkit.bilm.lstm import gates

SHORTEST, ROWS = 16, 32


class BiLSTM(tf.keras.layers.Layer):
    """One LSTM a direction; the forget gates begin at +1.

    Args:
        units: H, cells a direction.
        rng: of the initial weights: Glorot-uniform kernels, orthogonal recurrences.

    Call arguments:
        x: float32 [B, T, F].
        lengths: int32 [B], true tokens; the backward direction starts at the last one.
        training: multiplies the inputs in bfloat16 where the hardware does that faster; scores stay float32.

    Returns (of a call):
        float32 [B, T, 2H], forward states first; anything at padding.
    """

    def __init__(self, units: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.units, self.rng = units, rng

    def build(self, shape: tuple) -> None:
        """Draw the weights for F inputs."""
        names = ("forward", "backward")
        bound = (6.0 / (shape[-1] + 4 * self.units)) ** 0.5
        draws = [self.rng.uniform(-bound, bound, (shape[-1], 4 * self.units)) for _ in names]
        self.kernels = [self._weight(f"{n}_kernel", draw) for n, draw in zip(names, draws, strict=True)]
        turns = [np.linalg.qr(self.rng.normal(size=(4 * self.units, self.units)))[0].T for _ in names]
        self.recurrences = [self._weight(f"{n}_recurrence", turn) for n, turn in zip(names, turns, strict=True)]
        self.biases = [self._weight(f"{n}_bias", np.zeros(4 * self.units)) for n in names]

    def _weight(self, name: str, value: np.ndarray) -> tf.Variable:
        return self.add_weight(shape=value.shape, name=name, initializer=lambda shape, dtype: tf.constant(value, dtype))

    def call(self, x: tf.Tensor, lengths: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Run both directions; arguments as in the class."""
        rows, time = tf.shape(x)[0], tf.shape(x)[1]
        more_rows, more_time = -rows % ROWS, _power_of_two(time) - time
        x = tf.transpose(x, [1, 0, 2])
        both = zip((x, tf.reverse_sequence(x, lengths, 0, 1)), self.kernels, self.biases, strict=True)
        padding = [[0, more_time], [0, more_rows], [0, 0]]  # behind the product, which is most of the work
        dtype = product_dtype("auto") if training else tf.float32
        entering = [tf.pad(_product(part, kernel, dtype) + bias, padding) for part, kernel, bias in both]
        weights = [tf.convert_to_tensor(weight) for weight in self.recurrences]
        forward, backward = (
            tf.transpose(states[:time, :rows], [1, 0, 2]) for states in _recur(time, *entering, *weights)
        )
        return tf.concat([forward, tf.reverse_sequence(backward, lengths, 1)], -1)


def _product(x: tf.Tensor, kernel: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    kernel = tf.cast(tf.convert_to_tensor(kernel), dtype)
    return tf.cast(tf.tensordot(tf.cast(x, dtype), kernel, 1), tf.float32)


def _power_of_two(time: tf.Tensor) -> tf.Tensor:
    exact = tf.math.ceil(tf.math.log(tf.cast(tf.maximum(time, SHORTEST), tf.float32)) / np.log(2.0) - 1e-4)
    return tf.bitwise.left_shift(1, tf.cast(exact, tf.int32))


@tf.custom_gradient
def _recur(time: tf.Tensor, z_f: tf.Tensor, z_b: tf.Tensor, w_f: tf.Tensor, w_b: tf.Tensor):
    """Run both directions, each in its own order of time.

    Args:
        time: int32 [], steps to run; behind them the states are zero.
        z_f, z_b: [T, B, 4H], what the inputs give to the gates i, j, f, o, bias included.
        w_f, w_b: [H, 4H], recurrent weights.

    Returns:
        states of both directions, [T, B, H] each.
    """
    # Else the tape would follow the loop too, and keep what it does not need.
    zs, ws = ([tf.stop_gradient(part) for part in parts] for parts in ((z_f, z_b), (w_f, w_b)))
    activated_f, cells_f, states_f, activated_b, cells_b, states_b = _forward(time, zs, ws)

    def gradient(d_f: tf.Tensor, d_b: tf.Tensor) -> tuple:
        d_zs = _backward(time, [d_f, d_b], [activated_f, activated_b], [cells_f, cells_b], ws)
        d_ws = [
            tf.tensordot(states[: time - 1], dz[1:time], [[0, 1], [0, 1]])  # the first step starts from zeros
            for states, dz in zip((states_f, states_b), d_zs, strict=True)
        ]
        return None, *d_zs, *d_ws

    return (states_f, states_b), gradient


@compiled
def _forward(time: tf.Tensor, zs: list[tf.Tensor], ws: list[tf.Tensor]) -> list[tf.Tensor]:
    """Return activated gates [T, B, 4H], cells and states [T, B, H], those of the forward direction first."""
    steps, rows, units = tf.shape(zs[0])[0], tf.shape(zs[0])[1], ws[0].shape[0]
    zero, array = tf.zeros([rows, units]), partial(tf.TensorArray, tf.float32, steps)
    start = [(zero, zero, *(array(element_shape=[None, n * units]) for n in (4, 1, 1))) for _ in ws]

    def step(t: tf.Tensor, directions: list[tuple]) -> tuple:
        following = []
        for z, w, (c, h, activated, cells, states) in zip(zs, ws, directions, strict=True):
            *opened, c, h = gates(z[t] + tf.matmul(h, w), c, None)
            written = activated.write(t, tf.concat(opened, -1)), cells.write(t, c), states.write(t, h)
            following.append((c, h, *written))
        return t + 1, following

    _, ended = tf.while_loop(lambda t, _: t < time, step, (0, start))
    return [kept.stack() for direction in ended for kept in direction[2:]]


@compiled
def _backward(time: tf.Tensor, d_states: list, activated: list, cells: list, ws: list) -> list[tf.Tensor]:
    """Return the gradients of z of both directions, [T, B, 4H] each, from those of the states."""
    steps, rows, units = tf.shape(cells[0])[0], tf.shape(cells[0])[1], ws[0].shape[0]
    zero = tf.zeros([rows, units])
    start = [(zero, zero, tf.TensorArray(tf.float32, steps, element_shape=[None, 4 * units])) for _ in ws]

    def step(t: tf.Tensor, directions: list[tuple]) -> tuple:
        following = []
        for d_all, opened, cell, w, (dh, dc, written) in zip(d_states, activated, cells, ws, directions, strict=True):
            i, j, f, o = tf.split(opened[t], 4, -1)
            before = tf.where(t > 0, cell[tf.maximum(t - 1, 0)], 0.0)
            dh, tanh_c = dh + d_all[t], tf.tanh(cell[t])
            dc += dh * o * (1 - tanh_c**2)
            parts = [dc * j * i * (1 - i), dc * i * (1 - j**2), dc * before * f * (1 - f), dh * tanh_c * o * (1 - o)]
            dz = tf.concat(parts, -1)
            following.append((tf.matmul(dz, w, transpose_b=True), dc * f, written.write(t, dz)))
        return t - 1, following

    _, ended = tf.while_loop(lambda t, _: t >= 0, step, (time - 1, start))
    return [direction[2].stack() for direction in ended]
