"""A representation with a head behind it: from the layers of sentences to scores of labels."""

import numpy as np

from tasks.adapter.head import Head
from tasks.adapter.representation import Representation
from toolkit.bilm.backend import tf
from toolkit.config import Evaluate
from toolkit.keras.scalar_mix import ScalarMix, mixed


class Classifier(tf.keras.layers.Layer):
    """Scores sentences; the biLM below it is frozen.

    Args:
        representation: what stands for a token.
        head: the class of the head.
        n_labels: how many labels there are.
        settings: of the head.
        seed: of all initial weights and all dropout.

    Call arguments:
        layers: float16 or float32 [B, T, L+1, 2P], anything at padding.
        lengths: int32 [B], the true tokens.
        training: whether dropout is on.

    Returns (of a call):
        float32 [B, n_labels], before the softmax.

    Attributes:
        signature: of `layers` in float16 and `lengths`, batch and length left open: one graph for all batches.
        probabilities: layers and lengths to float32 [B, n_labels], behind the softmax, as a graph traced once.
    """

    def __init__(
        self, representation: Representation, head: type[Head], n_labels: int, settings: Evaluate, seed: int
    ) -> None:
        super().__init__(dtype="float32", autocast=False)
        self.representation = representation
        self.mix = ScalarMix(representation.n_layers, settings.mix_l2) if representation.learned else None
        self.head = head(n_labels, settings, np.random.default_rng(seed))
        self(np.zeros((1, 1, representation.n_layers, representation.width), np.float32), np.ones(1, np.int32))
        self.signature = (
            tf.TensorSpec([None, None, representation.n_layers, representation.width], tf.float16),
            tf.TensorSpec([None], tf.int32),
        )
        self.probabilities = tf.function(
            lambda layers, lengths: tf.nn.softmax(self(layers, lengths)), input_signature=self.signature
        )

    def call(self, layers: tf.Tensor, lengths: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Score sentences; arguments as in the class."""
        vectors = self.vectors(tf.cast(layers, tf.float32))
        return self.head(vectors, tf.sequence_mask(lengths, tf.shape(layers)[1]), training=training)

    def vectors(self, layers: tf.Tensor) -> tf.Tensor:
        """Return x_k and the mix side by side, [B, T, F]; x_k begins layer 0, which holds it once a direction."""
        parts = [layers[:, :, 0, : self.representation.token_width]] if self.representation.x_k else []
        if self.mix is not None:
            parts.append(self.mix(layers))
        elif self.representation.weights is not None:
            parts.append(mixed(layers, tf.constant(self.representation.weights)))
        return tf.concat(parts, -1)

    def layer_weights(self) -> tuple[list[float], float] | None:
        """Return the weights of the layers, as they are now, and gamma; None where no layer is in the vector."""
        if self.mix is not None:
            return self.mix.weights_of_layers().numpy().tolist(), float(tf.convert_to_tensor(self.mix.gamma))
        fixed = self.representation.weights
        return None if fixed is None else (list(fixed), 1.0)
