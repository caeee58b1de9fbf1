"""The biattentive classification network (McCann et al. 2017), which the ELMo paper used for SST-5."""

import numpy as np

from tasks.adapter.head import Head, beside, glorot, masked_max, masked_mean, seed_of
from tasks.adapter.recurrence import BiLSTM
from tasks.task import Kind
from toolkit.bilm.backend import tf
from toolkit.config import Evaluate

PIECES = 4  # of which maxout takes the highest


class BCN(Head):
    """Layer, encoder, biattention, integrator, four poolings, three maxout layers; section 5 of the paper.

    A single sentence attends to itself. Batch normalisation is left out: the score of a sentence would depend on those
    beside it. `behind` stands beside the integrator's states, as in the ELMo paper's model. Sizes follow `hidden`.
    """

    kinds = ("sentence", "pair")

    def __init__(self, n_labels: int, settings: Evaluate, rng: np.random.Generator, kind: Kind = "sentence") -> None:
        super().__init__(n_labels, settings, rng, kind)
        self.layer = tf.keras.layers.Dense(settings.hidden, "relu", kernel_initializer=glorot(rng))
        self.encoder, self.integrator = BiLSTM(settings.hidden, rng), BiLSTM(settings.hidden, rng)
        self.attention = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer=glorot(rng))
        self.maxout = [
            tf.keras.layers.Dense(PIECES * size, kernel_initializer=glorot(rng))
            for size in (2 * settings.hidden, settings.hidden)
        ]
        self.between = [tf.keras.layers.Dropout(settings.dropout, seed=seed_of(rng)) for _ in range(3)]

    def call(
        self,
        vectors: tf.Tensor,
        mask: tf.Tensor,
        behind: tf.Tensor | None,
        positions: tf.Tensor,
        training: bool = False,
    ) -> tf.Tensor:
        """Score sentences or pairs; arguments as in `Head`."""
        lengths = tf.reduce_sum(tf.cast(mask, tf.int32), 1)
        encoded = self.encoder(self.layer(self.dropout(vectors, training=training)), lengths, training=training)
        encoded = tf.where(mask[..., None], encoded, 0.0)
        other, other_mask = encoded, mask
        if self.kind == "pair":  # each sentence attends to its mate
            other, other_mask = (tf.concat(tf.split(part, 2)[::-1], 0) for part in (encoded, mask))
        affinity = tf.where(other_mask[:, None], tf.matmul(encoded, other, transpose_b=True), encoded.dtype.min)
        context = tf.matmul(tf.nn.softmax(affinity), other)
        together = tf.concat([encoded, encoded - context, encoded * context], -1)
        states = beside(self.integrator(together, lengths, training=training), behind)
        pooled = self._pooled(states, mask)
        x = tf.concat(tf.split(pooled, 2), -1) if self.kind == "pair" else pooled
        for dropout, layer in zip(self.between, self.maxout, strict=False):
            pieces = layer(dropout(x, training=training))
            x = tf.reduce_max(tf.reshape(pieces, [-1, PIECES, pieces.shape[-1] // PIECES]), 1)
        return self.scores(self.between[-1](x, training=training))

    def _pooled(self, states: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Return maximum, mean, minimum and a self-attentive mean over the true tokens, side by side."""
        weights = tf.nn.softmax(tf.where(mask[..., None], self.attention(states), states.dtype.min), 1)
        attended = tf.reduce_sum(weights * tf.where(mask[..., None], states, 0.0), 1)
        return tf.concat(
            [masked_max(states, mask), masked_mean(states, mask), -masked_max(-states, mask), attended], -1
        )


HEAD = BCN
