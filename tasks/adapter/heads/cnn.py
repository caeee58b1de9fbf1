"""A convolutional network over a sentence's vectors (Kim 2014)."""

import numpy as np

from tasks.adapter.head import Head, glorot, seed_of
from tasks.task import Kind
from toolkit.bilm.backend import tf
from toolkit.config import Evaluate

WINDOWS = (3, 4, 5)  # words, as in the paper


class CNN(Head):
    """Filters over 3, 4 and 5 words, their maximum over the sentence, dropout, one linear layer.

    A window may begin or end beyond the sentence, where there are zeros, so that the shortest has one, too. There are
    `hidden` filters a width; the paper has 100, and a bound on the norm of the last layer that is left out here.
    """

    has_output = False

    def __init__(self, n_labels: int, settings: Evaluate, rng: np.random.Generator, kind: Kind = "sentence") -> None:
        super().__init__(n_labels, settings, rng, kind)
        self.filters = [
            tf.keras.layers.Conv1D(settings.hidden, window, padding="valid", kernel_initializer=glorot(rng))
            for window in WINDOWS
        ]
        self.dropout_behind = tf.keras.layers.Dropout(settings.dropout, seed=seed_of(rng))

    def call(
        self,
        vectors: tf.Tensor,
        mask: tf.Tensor,
        behind: tf.Tensor | None,
        positions: tf.Tensor,
        training: bool = False,
    ) -> tf.Tensor:
        """Score sentences; arguments as in `Head`."""
        vectors = tf.where(mask[..., None], self.dropout(vectors, training=training), 0.0)
        pooled = []
        for window, filters in zip(WINDOWS, self.filters, strict=True):
            around = [[0, 0], [window - 1, window - 1]]
            found = tf.nn.relu(filters(tf.pad(vectors, [*around, [0, 0]])))
            # A window counts where it holds a true token: the first `length + window - 1` of them.
            counts = tf.pad(mask, [[0, 0], [window - 1, 0]], constant_values=True)
            pooled.append(tf.reduce_max(tf.where(counts[..., None], found, 0.0), 1))
        return self.scores(self.dropout_behind(tf.concat(pooled, -1), training=training))


HEAD = CNN
