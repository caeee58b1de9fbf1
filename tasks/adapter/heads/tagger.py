"""A bidirectional LSTM over a sentence's vectors, then a softmax layer at each token."""

from tasks.adapter.heads.bilstm import BiLSTMHead
from toolkit.bilm.backend import tf


class Tagger(BiLSTMHead):
    """One bidirectional LSTM layer and one linear layer on its states; each tag is chosen by itself, without a CRF."""

    kinds = ("tagging",)

    def call(
        self,
        vectors: tf.Tensor,
        mask: tf.Tensor,
        behind: tf.Tensor | None,
        positions: tf.Tensor,
        training: bool = False,
    ) -> tf.Tensor:
        """Score the tags of every token; arguments as in `Head`."""
        states = self.states(vectors, mask, behind, training)
        return self.scores(self.dropout_behind(states, training=training))


HEAD = Tagger
