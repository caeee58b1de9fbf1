"""Logistic regression on the mean of a sentence's vectors, as SentEval does it."""

from tasks.adapter.head import Head, asked, compared, masked_mean
from toolkit.bilm.backend import tf


class Linear(Head):
    """The mean over the true tokens, then one linear layer: what the vectors say by themselves.

    Of a pair |u - v| and u * v of the two means, or of the two words in question (Conneau and Kiela 2018, SentEval).
    Of tokens the layer is on each one's vector. `tasks.adapter.logistic` finds the weights; by gradient are found
    those of a learned mix. Dropout is on the tokens' vectors alone: on their mean it would take a feature from the
    whole sentence.
    """

    kinds = ("sentence", "pair", "tagging")
    has_output = False
    is_linear = True

    def features(self, vectors: tf.Tensor, mask: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
        """Return what the scores are linear in; arguments as in `Head`, the result as its scores but for the width."""
        if self.kind == "tagging":
            return vectors
        means = masked_mean(vectors, asked(mask, positions))
        return compared(means) if self.kind == "pair" else means

    def call(
        self,
        vectors: tf.Tensor,
        mask: tf.Tensor,
        behind: tf.Tensor | None,
        positions: tf.Tensor,
        training: bool = False,
    ) -> tf.Tensor:
        """Score sentences, pairs or tokens; arguments as in `Head`."""
        return self.scores(self.features(self.dropout(vectors, training=training), mask, positions))


HEAD = Linear
