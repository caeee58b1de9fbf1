"""The token layer: characters to one context-independent vector a word (x_k of the ELMo paper)."""

from collections.abc import Callable

import numpy as np

from toolkit.bilm.backend import tf
from toolkit.bilm.spec import BiLMSpec
from toolkit.text.chars import N_CHARACTERS


class CharCNN(tf.Module):
    """Character embedding, convolutions with max-pooling, highway layers and projection.

    Initial weights are those of bilm-tf, drawn from `rng`; `variable` makes the variables.
    """

    def __init__(
        self, spec: BiLMSpec, rng: np.random.Generator, variable: Callable[..., tf.Variable] = tf.Variable
    ) -> None:
        super().__init__()
        self.spec = spec
        n, p = spec.n_filters, spec.projection_dim
        normal = lambda *shape: _float32(rng.normal(0.0, shape[0] ** -0.5, shape))  # noqa: E731
        # Row 0 is the mask: zeros, never trained, never written to a file.
        table = np.concatenate([np.zeros((1, spec.char_dim)), rng.uniform(-1, 1, (N_CHARACTERS - 1, spec.char_dim))])
        self.char_embed = variable(_float32(table), name="char_embed")
        self.kernels, self.biases = [], []
        for width, number in spec.filters:
            shape = (width, spec.char_dim, number)
            scale = (width * spec.char_dim) ** -0.5
            kernel = rng.uniform(-0.05, 0.05, shape) if spec.activation == "relu" else rng.normal(0, scale, shape)
            self.kernels.append(variable(_float32(kernel), name=f"W_cnn_{width}"))
            self.biases.append(variable(tf.zeros(number), name=f"b_cnn_{width}"))
        self.highways = [
            {
                "W_carry": variable(normal(n, n), name="W_carry"),
                "b_carry": variable(tf.fill([n], -2.0), name="b_carry"),
                "W_transform": variable(normal(n, n), name="W_transform"),
                "b_transform": variable(tf.zeros(n), name="b_transform"),
            }
            for _ in range(spec.n_highway)
        ]
        self.projection = (
            None if n == p else (variable(normal(n, p), name="W_proj"), variable(tf.zeros(p), name="b_proj"))
        )

    def __call__(self, char_ids: tf.Tensor, dtype: tf.DType = tf.float32) -> tf.Tensor:
        """Return the vectors of words.

        Args:
            char_ids: int [U, C'] with ids as `toolkit.text.chars` makes them. C' may be less than C as long as the
                widest filter fits behind the longest word: one all-padding window then keeps each maximum as it was.
            dtype: of the matrix products; sums of the highway layers stay float32.

        Returns:
            float32 [U, P].
        """
        x = self.pooled(char_ids, dtype, dense(self.char_embed))
        for layer in self.highways:
            carry = tf.sigmoid(_product(x, layer["W_carry"], dtype) + layer["b_carry"])
            transform = tf.nn.relu(_product(x, layer["W_transform"], dtype) + layer["b_transform"])
            x = carry * transform + (1.0 - carry) * x
        if self.projection is not None:
            x = _product(x, self.projection[0], dtype) + self.projection[1]
        return x

    def pooled(self, char_ids: tf.Tensor, dtype: tf.DType, table: tf.Tensor) -> tf.Tensor:
        """Return the activated maxima of all convolutions, float32 [U, filters].

        Args:
            char_ids, dtype: as of a call.
            table: `char_embed`, or what stands for it.
        """
        pairs = zip(self.kernels, self.biases, strict=True)
        return tf.concat([self._convolve(char_ids, table, *pair, dtype) for pair in pairs], -1)

    def _convolve(
        self, char_ids: tf.Tensor, table: tf.Tensor, kernel: tf.Variable, bias: tf.Variable, dtype: tf.DType
    ) -> tf.Tensor:
        """One convolution as one matrix product over windows, then maximum over positions, then activation."""
        width, dim, number = kernel.shape
        positions = tf.shape(char_ids)[1] - (width - 1)
        window_ids = tf.stack([char_ids[:, i : i + positions] for i in range(width)], -1)
        windows = tf.reshape(tf.cast(tf.gather(table, window_ids), dtype), [-1, width * dim])
        y = tf.matmul(windows, tf.cast(tf.reshape(kernel, [width * dim, number]), dtype))
        # The bias is the same at all positions and the activation rises: both may follow the maximum.
        y = tf.reduce_max(tf.reshape(y, [-1, positions, number]), 1)
        y = tf.cast(y, tf.float32) + bias
        return tf.nn.relu(y) if self.spec.activation == "relu" else tf.tanh(y)


def dense(table: tf.Variable) -> tf.Tensor:
    """Return a table whose gradient is one tensor: of rows that repeat, Keras' Adam would take a step each."""
    return tf.reshape(table, table.shape)


def _product(x: tf.Tensor, weight: tf.Variable, dtype: tf.DType) -> tf.Tensor:
    return tf.cast(tf.matmul(tf.cast(x, dtype), tf.cast(weight, dtype)), tf.float32)


def _float32(values: np.ndarray) -> np.ndarray:
    return np.asarray(values, np.float32)
