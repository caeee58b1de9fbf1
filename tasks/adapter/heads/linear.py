"""A softmax layer on the mean of a sentence's vectors."""

from tasks.adapter.head import Head, masked_mean
from toolkit.bilm.backend import tf


class Linear(Head):
    """The mean over the true tokens, then one linear layer: what the vectors say by themselves."""

    def call(self, vectors: tf.Tensor, mask: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Score sentences; arguments as in `Head`."""
        mean = masked_mean(self.before(vectors, training=training), mask)
        return self.scores(self.behind(mean, training=training))


HEAD = Linear
