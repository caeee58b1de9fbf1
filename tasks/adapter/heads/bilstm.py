"""A bidirectional LSTM over a sentence's vectors, pooled, then a softmax layer."""

import numpy as np

from tasks.adapter.head import Head, glorot, masked_max, masked_mean, seed_of
from toolkit.bilm.backend import tf
from toolkit.config import Evaluate


class BiLSTM(Head):
    """One bidirectional LSTM layer; mean and maximum over the true tokens side by side, then one linear layer.

    Padding stands behind the sentence. The states pass it unchanged, so the backward direction starts at the last true
    token. On a CPU Keras runs the masked LSTM as a loop; a hand-written gradient was no faster at these sizes.
    """

    def __init__(self, n_labels: int, settings: Evaluate, rng: np.random.Generator) -> None:
        super().__init__(n_labels, settings, rng)
        self.lstm = tf.keras.layers.Bidirectional(
            self._direction(settings, rng), backward_layer=self._direction(settings, rng, True)
        )
        self.dropout_behind = tf.keras.layers.Dropout(settings.dropout, seed=seed_of(rng))

    @staticmethod
    def _direction(settings: Evaluate, rng: np.random.Generator, backwards: bool = False) -> tf.keras.layers.LSTM:
        return tf.keras.layers.LSTM(
            settings.hidden,
            return_sequences=True,
            go_backwards=backwards,
            kernel_initializer=glorot(rng),
            recurrent_initializer=tf.keras.initializers.Orthogonal(seed=seed_of(rng)),
        )

    def call(self, vectors: tf.Tensor, mask: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Score sentences; arguments as in `Head`."""
        states = self.lstm(self.dropout(vectors, training=training), mask=mask, training=training)
        pooled = tf.concat([masked_mean(states, mask), masked_max(states, mask)], -1)
        return self.scores(self.dropout_behind(pooled, training=training))


HEAD = BiLSTM
