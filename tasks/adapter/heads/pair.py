"""Two sentences, or a word in two sentences, read by one bidirectional LSTM and compared."""

import numpy as np

from tasks.adapter.head import asked, compared, glorot, masked_max, masked_mean
from tasks.adapter.heads.bilstm import BiLSTMHead
from tasks.task import Kind
from toolkit.bilm.backend import tf
from toolkit.config import Evaluate


class Pair(BiLSTMHead):
    """u and v of the two sentences, then a layer on u, v, |u - v| and u * v (Conneau et al. 2017, InferSent).

    Each is the mean and the maximum over a sentence's states; where a word is in question, its state alone.
    """

    kinds = ("pair",)

    def __init__(self, n_labels: int, settings: Evaluate, rng: np.random.Generator, kind: Kind = "pair") -> None:
        super().__init__(n_labels, settings, rng, kind)
        self.hidden = tf.keras.layers.Dense(settings.hidden, "relu", kernel_initializer=glorot(rng))

    def call(
        self,
        vectors: tf.Tensor,
        mask: tf.Tensor,
        behind: tf.Tensor | None,
        positions: tf.Tensor,
        training: bool = False,
    ) -> tf.Tensor:
        """Score pairs; arguments as in `Head`."""
        states, mask = self.states(vectors, mask, behind, training), asked(mask, positions)
        both = tf.concat([masked_mean(states, mask), masked_max(states, mask)], -1)
        joined = tf.concat([*tf.split(both, 2), compared(both)], -1)
        return self.scores(self.dropout_behind(self.hidden(joined), training=training))


HEAD = Pair
