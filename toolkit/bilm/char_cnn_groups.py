"""The token layer for many words in groups of like length: all convolutions in one product, the rest compiled."""

from collections.abc import Sequence

import numpy as np

from toolkit.bilm.backend import tf
from toolkit.bilm.char_cnn import CharCNN
from toolkit.bilm.compiled import fused, logistic
from toolkit.bilm.spec import BiLMSpec
from toolkit.text.chars import PADDING

GROUP_LENGTHS = (7, 9, 11, 14, 24)  # ids of a word with both marks


def group_widths(spec: BiLMSpec) -> tuple[int, ...]:
    """Return how many characters each length group keeps: the widest filter may begin at a word's last one."""
    widths = (length + spec.widest_filter - 1 for length in GROUP_LENGTHS)
    return (*(width for width in widths if width < spec.max_characters), spec.max_characters)


def group_of(lengths: np.ndarray, spec: BiLMSpec) -> np.ndarray:
    """Return the length group of words, as places in `group_widths`, from their ids before the padding."""
    return np.searchsorted(np.array(group_widths(spec)[:-1]) - spec.widest_filter + 1, lengths)


def grouped_token_vectors(cnn: CharCNN, groups: Sequence[tf.Tensor], dtype: tf.DType) -> tf.Tensor:
    """Return the vectors of words that come in groups of like length; equal to those of `cnn` at their full length.

    Args:
        cnn: the weights.
        groups: int32 [U_g, C_g] character ids, C_g fixed. That of the last group is C; those of others leave room for
            the widest filter to begin at the longest word's last character.
        dtype: of the matrix products; sums of the highway layers stay float32.

    Returns:
        float32 [U, P], U the groups' words in their order.
    """
    *short, whole = groups
    # At the full length a word may end without padding behind it, and narrow filters have positions of their own.
    x = cnn.pooled(whole, dtype, cnn.char_embed)
    if short:
        x = tf.concat([_pooled(cnn, short, dtype), x], 0)
    for layer in cnn.highways:
        narrow = zip(_handed_out(tf.cast(x, dtype), 2), ("W_carry", "W_transform"), strict=True)
        carry, transform = (tf.matmul(own, tf.cast(layer[name], dtype)) for own, name in narrow)
        x = _highway(x, carry, layer["b_carry"], transform, layer["b_transform"])
    if cnn.projection is not None:
        x = tf.matmul(tf.cast(x, dtype), tf.cast(cnn.projection[0], dtype))
        x = tf.cast(x, tf.float32) + cnn.projection[1]
    return x


def _pooled(cnn: CharCNN, groups: Sequence[tf.Tensor], dtype: tf.DType) -> tf.Tensor:
    """All filters at the positions of a word's characters: narrow filters are filled up with zeros behind.

    All other positions see padding only and give one and the same value, computed once.
    """
    widest, dim = cnn.spec.widest_filter, cnn.spec.char_dim
    kernels = [tf.pad(kernel, [[0, widest - kernel.shape[0]], [0, 0], [0, 0]]) for kernel in cnn.kernels]
    kernel = tf.cast(tf.reshape(tf.concat(kernels, -1), [widest * dim, -1]), dtype)

    def product(window_ids: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        # Looked up in float32, so that the gradients of a character, thousands a step, are summed in it.
        windows = tf.cast(tf.gather(cnn.char_embed, window_ids), dtype)
        return tf.matmul(tf.reshape(windows, [-1, widest * dim]), kernel)

    *each, last = _handed_out(kernel, len(groups) + 1)
    paddings = _handed_out(product(tf.fill([1, widest], PADDING), last), len(groups))
    pooled = []
    for char_ids, own, padding in zip(groups, each, paddings, strict=True):
        positions = (char_ids.shape[1] or tf.shape(char_ids)[1]) - widest + 1
        y = product(tf.stack([char_ids[:, i : i + positions] for i in range(widest)], -1), own)
        pooled.append(_pool(tf.reshape(y, [-1, positions, kernel.shape[1]]), padding))
    activate = _relu if cnn.spec.activation == "relu" else _tanh
    return activate(tf.concat(pooled, 0), tf.concat(cnn.biases, 0))


def _handed_out(x: tf.Tensor, number: int) -> list[tf.Tensor]:
    """A tensor for several users, whose gradients are summed in their order and in float32.

    TensorFlow itself begins its sum of three or more with whichever buffer is free first: no two runs are then equal.
    """

    @tf.custom_gradient
    def copies(x: tf.Tensor) -> tuple:
        def gradient(*upstream: tf.Tensor) -> tf.Tensor:
            total = tf.cast(upstream[0], tf.float32)
            for one in upstream[1:]:
                total += tf.cast(one, tf.float32)
            return tf.cast(total, x.dtype)

        return tuple(tf.identity(x) for _ in range(number)), gradient

    return list(copies(x))


@fused
def _pool(y: tf.Tensor, padding: tf.Tensor) -> tf.Tensor:
    return tf.maximum(tf.reduce_max(y, 1), padding)


@fused
def _relu(pooled: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    return tf.nn.relu(tf.cast(pooled, tf.float32) + bias)


@fused
def _tanh(pooled: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    return tf.tanh(tf.cast(pooled, tf.float32) + bias)


@fused
def _highway(
    x: tf.Tensor, carry: tf.Tensor, b_carry: tf.Tensor, transform: tf.Tensor, b_transform: tf.Tensor
) -> tf.Tensor:
    """Highway layer behind its products (Srivastava et al. 2015, equation 3)."""
    carry = logistic(tf.cast(carry, tf.float32) + b_carry)
    transform = tf.nn.relu(tf.cast(transform, tf.float32) + b_transform)
    return carry * transform + (1.0 - carry) * x
