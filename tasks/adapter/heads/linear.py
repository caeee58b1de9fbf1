"""A softmax layer on the mean of a sentence's vectors."""

from tasks.adapter.head import Head, masked_mean
from toolkit.bilm.backend import tf


class Linear(Head):
    """The mean over the true tokens, then one linear layer: what the vectors say by themselves.

    Dropout is on the tokens' vectors alone: on their mean it would take a feature from the whole sentence.
    """

    def call(self, vectors: tf.Tensor, mask: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Score sentences; arguments as in `Head`."""
        return self.scores(masked_mean(self.dropout(vectors, training=training), mask))


HEAD = Linear
