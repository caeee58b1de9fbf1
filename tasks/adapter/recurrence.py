"""A bidirectional LSTM layer that is quick on a CPU: one product for all inputs, a compiled recurrence, its gradient.

Keras runs a masked LSTM as a loop of many small operations. Here XLA compiles the recurrence of each direction, and a
hand-written gradient forms each weight gradient as one product over all steps. XLA compiles once a shape, so time is
padded to a power of two and the batch to a multiple of `ROWS`; the loop runs to the longest sentence only.
"""

from collections.abc import Callable
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
        float32 [B, T, 2H], forward states first; zeros at padding.
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
        padding = [[0, _power_of_two(time) - time], [0, -rows % ROWS]]
        x = tf.transpose(x, [1, 0, 2])
        inside = tf.pad(tf.transpose(tf.sequence_mask(lengths, time)), padding)
        dtype = product_dtype("auto") if training else tf.float32
        found = []
        for run, kernel, bias, recurrence in zip(_DIRECTIONS, self.kernels, self.biases, self.recurrences, strict=True):
            z = tf.pad(_product(x, kernel, dtype) + bias, [*padding, [0, 0]])  # behind the product: less to multiply
            found.append(run(time, inside, z, tf.convert_to_tensor(recurrence))[:time, :rows])
        return tf.transpose(tf.concat(found, -1), [1, 0, 2])


def _product(x: tf.Tensor, kernel: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    kernel = tf.cast(tf.convert_to_tensor(kernel), dtype)
    return tf.cast(tf.tensordot(tf.cast(x, dtype), kernel, 1), tf.float32)


def _power_of_two(time: tf.Tensor) -> tf.Tensor:
    exact = tf.math.ceil(tf.math.log(tf.cast(tf.maximum(time, SHORTEST), tf.float32)) / np.log(2.0) - 1e-4)
    return tf.bitwise.left_shift(1, tf.cast(exact, tf.int32))


def _direction(backward: bool) -> Callable[..., tf.Tensor]:
    """Return the recurrence of one direction; TensorFlow runs the two of a layer beside each other.

    Its arguments are time, int32 [], steps to run; inside, bool [T, B], where a token stands; z, [T, B, 4H], what the
    inputs give to the gates i, j, f, o, bias included; w, [H, 4H], recurrent weights. It returns states, [T, B, H],
    zero where no token stands.
    """

    @tf.custom_gradient
    def run(time: tf.Tensor, inside: tf.Tensor, z: tf.Tensor, w: tf.Tensor):
        # Else the tape would follow the loop too, and keep what it does not need.
        z, w = tf.stop_gradient(z), tf.stop_gradient(w)
        activated, cells, states = _forward(time, inside, z, w, backward)

        def gradient(d_states: tf.Tensor) -> tuple:
            dz = _gradient(time, inside, d_states, activated, cells, w, backward)
            before, behind = slice(None, time - 1), slice(1, time)  # the first step starts from zeros
            at, of = (behind, before) if backward else (before, behind)
            return None, None, dz, tf.tensordot(states[at], dz[of], [[0, 1], [0, 1]])

        return states, gradient

    return run


_DIRECTIONS = (_direction(False), _direction(True))


def _order(time: tf.Tensor, downwards: bool) -> tuple[tf.Tensor, Callable[..., tf.Tensor], Callable]:
    """Return where a loop over the steps starts, whether it goes on, and the step behind a step.

    Only the loop's variable may be an index inside it: XLA would compile again for every `time` that is part of one.
    """
    if downwards:
        return time - 1, lambda t, *_: t >= 0, lambda t: t - 1
    return tf.zeros_like(time), lambda t, *_: t < time, lambda t: t + 1


@compiled
def _forward(time: tf.Tensor, inside: tf.Tensor, z: tf.Tensor, w: tf.Tensor, backward: bool) -> list[tf.Tensor]:
    """Return activated gates [T, B, 4H], cells and states [T, B, H]."""
    steps, rows, units = tf.shape(z)[0], tf.shape(z)[1], w.shape[0]
    zero, array = tf.zeros([rows, units]), partial(tf.TensorArray, tf.float32, steps)

    def step(t: tf.Tensor, c: tf.Tensor, h: tf.Tensor, *arrays: tf.TensorArray) -> tuple:
        *opened, c, h = gates(z[t] + tf.matmul(h, w), c, None)
        c, h = (tf.where(inside[t][:, None], part, 0.0) for part in (c, h))
        kept = (tf.concat(opened, -1), c, h)
        return following(t), c, h, *(array.write(t, part) for array, part in zip(arrays, kept, strict=True))

    arrays = (array(element_shape=[None, n * units]) for n in (4, 1, 1))
    start, ahead, following = _order(time, backward)
    _, _, _, *kept = tf.while_loop(ahead, step, (start, zero, zero, *arrays))
    return [array.stack() for array in kept]


@compiled
def _gradient(
    time: tf.Tensor,
    inside: tf.Tensor,
    d_states: tf.Tensor,
    activated: tf.Tensor,
    cells: tf.Tensor,
    w: tf.Tensor,
    backward: bool,
) -> tf.Tensor:
    """Return the gradient of z, [T, B, 4H], from that of the states."""
    steps, rows, units = tf.shape(cells)[0], tf.shape(cells)[1], w.shape[0]
    zero = tf.zeros([rows, units])

    def step(t: tf.Tensor, dh: tf.Tensor, dc: tf.Tensor, written: tf.TensorArray) -> tuple:
        first, before = (t >= steps - 1, tf.minimum(t + 1, steps - 1)) if backward else (t <= 0, tf.maximum(t - 1, 0))
        i, j, f, o = tf.split(activated[t], 4, -1)
        c, tanh_c = tf.where(first, 0.0, cells[before]), tf.tanh(cells[t])
        dh, dc = (tf.where(inside[t][:, None], part, 0.0) for part in (dh + d_states[t], dc))
        dc += dh * o * (1 - tanh_c**2)
        parts = [dc * j * i * (1 - i), dc * i * (1 - j**2), dc * c * f * (1 - f), dh * tanh_c * o * (1 - o)]
        dz = tf.concat(parts, -1)
        return following(t), tf.matmul(dz, w, transpose_b=True), dc * f, written.write(t, dz)

    start, ahead, following = _order(time, not backward)
    written = tf.TensorArray(tf.float32, steps, element_shape=[None, 4 * units])
    return tf.while_loop(ahead, step, (start, zero, zero, written))[-1].stack()
