"""A biLM made ready to encode much text: weights in the dtype of the products, element-wise work compiled."""

import copy

import numpy as np

from toolkit.bilm.backend import tf
from toolkit.bilm.char_cnn import CharCNN
from toolkit.bilm.char_cnn_groups import grouped_token_vectors
from toolkit.bilm.compiled import compiled
from toolkit.bilm.lstm import Restart
from toolkit.bilm.model import BiLM, States, run_layers

COMPILED_ROWS = 16  # sequences of a batch from which on compiling pays


class Inference:
    """The functions of a biLM whose weights no longer change.

    Args:
        bilm: the weights; those of the products are copied where the dtype is another one.
        dtype: of the matrix products, float32 or bfloat16. Cells, sums of the highway layers and results are float32.

    Attributes:
        rounds: whether values are rounded between products. The last bit can then become 0.4 %, so every batch,
            however small, passes through the same compiled functions, and a sentence's vectors are the same to the bit.
            In float32 compiling for small batches costs more than it gains.
    """

    def __init__(self, bilm: BiLM, dtype: tf.DType = tf.float32) -> None:
        self.bilm, self.spec, self.dtype = bilm, bilm.spec, dtype
        self.rounds = dtype != tf.float32
        self._cnn = bilm.char_cnn and _in_dtype(bilm.char_cnn, dtype)
        self._weights = [
            (tf.cast(kernel, dtype), bias, *(tf.cast(matrix, dtype) for matrix in projection))
            for kernel, bias, *projection in bilm.lstm_weights()
        ]
        # The first layer reads the same words again and again: its input product is made once for each of them.
        self._first, recurrent = tf.split(self._weights[0][0], 2, 1)
        self._weights[0] = recurrent, *self._weights[0][1:]
        rows = tf.TensorSpec([None] * 4, tf.float32)
        unbroken = tf.TensorSpec([None, None], tf.float32), tf.TensorSpec([None] * 3, tf.int32), (rows, rows)
        restarting = *unbroken, (tf.TensorSpec([None, None], tf.bool), rows, rows)
        self._unbroken = tf.function(self._layers, unbroken, autograph=False)
        self._plain = tf.function(self._layers, restarting, autograph=False)
        self._fast = tf.function(lambda *given: self._layers(*given, compiled), restarting, autograph=False)
        self._group = tf.function(self._grouped, autograph=False, reduce_retracing=True)

    def layers(
        self, vectors: np.ndarray, places: np.ndarray, states: States, restarts: np.ndarray, start: States
    ) -> tuple[tf.Tensor, States]:
        """Run the LSTM layers over rows of sentences that lie one behind the other.

        Args:
            vectors: float32 [n, P], of distinct words.
            places: int32 [T, R, B], rows of `vectors`; the backward half holds each sentence reversed.
            states: cells float32 [L, R, B, D] and outputs float32 [L, R, B, P] to go on from.
            restarts: bool [T, B], the steps that a row takes from `start` instead.
            start: such states of one row.

        Returns:
            float32 [L, T, R, B, P], residual included, the backward half still reversed; and the states behind the last
            step.
        """
        if self.rounds or places.shape[2] >= COMPILED_ROWS:
            return self._fast(vectors, places, states, (restarts, *start))
        if restarts.any():
            return self._plain(vectors, places, states, (restarts, *start))
        return self._unbroken(vectors, places, states)

    def group_vectors(self, ids: tf.Tensor) -> tf.Tensor:
        """Return what `BiLM.token_vectors` does, of the words of a length group, fast for many.

        Args:
            ids: int32 [U, C'] character ids, C' one of `group_widths` and U one of few sizes: each shape is compiled.

        Returns:
            float32 [U, P].
        """
        return self._group(ids, whole=ids.shape[1] == self.spec.max_characters)

    def _layers(
        self, vectors: tf.Tensor, places: tf.Tensor, states: States, restart: Restart | None = None, *wrap
    ) -> tuple[tf.Tensor, States]:
        places = tf.ensure_shape(places, [None, self.spec.directions, None])
        x = tf.matmul(tf.cast(vectors, self.dtype), self._first), places
        return run_layers(x, states, self._weights, self.spec, restart, *wrap)

    def _grouped(self, ids: tf.Tensor, whole: bool) -> tf.Tensor:
        empty = tf.zeros([0, self.spec.max_characters], ids.dtype)
        return grouped_token_vectors(self._cnn, [ids] if whole else [ids, empty], self.dtype)


def _in_dtype(cnn: CharCNN, dtype: tf.DType) -> CharCNN:
    """A character CNN whose matrices are constants of a dtype."""
    lowered = copy.copy(cnn)
    lowered.kernels = [tf.cast(kernel, dtype) for kernel in cnn.kernels]
    lowered.highways = [
        {name: tf.cast(value, dtype) if name.startswith("W_") else value for name, value in layer.items()}
        for layer in cnn.highways
    ]
    if cnn.projection is not None:
        lowered.projection = tf.cast(cnn.projection[0], dtype), cnn.projection[1]
    return lowered
