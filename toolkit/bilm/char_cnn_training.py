"""The token layer for training: all convolutions in one product, element-wise work in compiled pieces."""

from collections.abc import Sequence

from toolkit.bilm.backend import tf
from toolkit.bilm.char_cnn import CharCNN
from toolkit.bilm.compiled import fused
from toolkit.text.chars import PADDING


def training_token_vectors(cnn: CharCNN, groups: Sequence[tf.Tensor], dtype: tf.DType) -> tf.Tensor:
    """Return the vectors of words that come in groups of like length; equal to `cnn(group)` of each.

    Args:
        cnn: the weights.
        groups: int32 [U_g, C_g] character ids, C_g fixed. Below C, C_g leaves room for the widest filter to begin at
            the longest word's last character.
        dtype: of the matrix products; sums of the highway layers stay float32.

    Returns:
        float32 [U, P], U the groups' words in their order.
    """
    spec = cnn.spec
    pooled = []
    for group in groups:
        # At the full length a word may end without padding behind it, and narrow filters have positions of their own.
        whole = group.shape[1] == spec.max_characters
        pooled.append(cnn.pooled(group, dtype) if whole else _pooled(cnn, group, dtype))
    x = tf.concat(pooled, 0)
    for layer in cnn.highways:
        narrow = tf.cast(x, dtype)
        carry, transform = (tf.matmul(narrow, tf.cast(layer[name], dtype)) for name in ("W_carry", "W_transform"))
        x = _highway(x, carry, layer["b_carry"], transform, layer["b_transform"])
    if cnn.projection is not None:
        x = tf.matmul(tf.cast(x, dtype), tf.cast(cnn.projection[0], dtype))
        x = tf.cast(x, tf.float32) + cnn.projection[1]
    return x


def _pooled(cnn: CharCNN, char_ids: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """All filters at the positions of a word's characters: narrow filters are filled up with zeros behind.

    All other positions see padding only and give one and the same value, computed once.
    """
    widest, dim = cnn.spec.widest_filter, cnn.spec.char_dim
    kernels = [tf.pad(kernel, [[0, widest - kernel.shape[0]], [0, 0], [0, 0]]) for kernel in cnn.kernels]
    kernel = tf.cast(tf.reshape(tf.concat(kernels, -1), [widest * dim, -1]), dtype)
    positions = char_ids.shape[1] - widest + 1
    # Looked up in float32, so that the gradients of a character, thousands a step, are summed in it.
    window_ids = tf.stack([char_ids[:, i : i + positions] for i in range(widest)], -1)
    windows = tf.cast(tf.gather(cnn.char_embed, window_ids), dtype)
    y = tf.matmul(tf.reshape(windows, [-1, widest * dim]), kernel)
    y = tf.reshape(y, [-1, positions, kernel.shape[1]])
    padding = tf.cast(tf.gather(cnn.char_embed, [[PADDING] * widest]), dtype)
    padding = tf.matmul(tf.reshape(padding, [1, widest * dim]), kernel)
    pool = _pool_relu if cnn.spec.activation == "relu" else _pool_tanh
    return pool(y, padding, tf.concat(cnn.biases, 0))


@fused
def _pool_relu(y: tf.Tensor, padding: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    return tf.nn.relu(_pool(y, padding) + bias)


@fused
def _pool_tanh(y: tf.Tensor, padding: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    return tf.tanh(_pool(y, padding) + bias)


def _pool(y: tf.Tensor, padding: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.maximum(tf.reduce_max(y, 1), padding), tf.float32)


@fused
def _highway(
    x: tf.Tensor, carry: tf.Tensor, b_carry: tf.Tensor, transform: tf.Tensor, b_transform: tf.Tensor
) -> tf.Tensor:
    """Highway layer behind its products (Srivastava et al. 2015, equation 3)."""
    carry = 0.5 + 0.5 * tf.tanh(0.5 * (tf.cast(carry, tf.float32) + b_carry))
    transform = tf.nn.relu(tf.cast(transform, tf.float32) + b_transform)
    return carry * transform + (1.0 - carry) * x
