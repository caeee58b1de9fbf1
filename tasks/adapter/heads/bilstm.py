"""A bidirectional LSTM over a sentence's vectors, pooled, then a softmax layer."""

import numpy as np

from tasks.adapter.head import Head, beside, masked_max, masked_mean, seed_of
from tasks.adapter.recurrence import BiLSTM
from tasks.task import Kind
from toolkit.bilm.backend import tf
from toolkit.config import Evaluate


class BiLSTMHead(Head):
    """One bidirectional LSTM layer; mean and maximum over the true tokens side by side, then one linear layer."""

    def __init__(self, n_labels: int, settings: Evaluate, rng: np.random.Generator, kind: Kind = "sentence") -> None:
        super().__init__(n_labels, settings, rng, kind)
        self.lstm = BiLSTM(settings.hidden, rng)
        self.dropout_behind = tf.keras.layers.Dropout(settings.dropout, seed=seed_of(rng))

    def states(self, vectors: tf.Tensor, mask: tf.Tensor, behind: tf.Tensor | None, training: bool) -> tf.Tensor:
        """Return the states of the tokens, [B, T, 2H], with `behind` beside them."""
        lengths = tf.reduce_sum(tf.cast(mask, tf.int32), 1)
        return beside(self.lstm(self.dropout(vectors, training=training), lengths, training=training), behind)

    def call(
        self,
        vectors: tf.Tensor,
        mask: tf.Tensor,
        behind: tf.Tensor | None,
        positions: tf.Tensor,
        training: bool = False,
    ) -> tf.Tensor:
        """Score sentences; arguments as in `Head`."""
        states = self.states(vectors, mask, behind, training)
        pooled = tf.concat([masked_mean(states, mask), masked_max(states, mask)], -1)
        return self.scores(self.dropout_behind(pooled, training=training))


HEAD = BiLSTMHead
