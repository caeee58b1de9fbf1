"""Mixes of a biLM's layers as Keras layers: fixed, learned for all tokens, a gate a token, or side by side."""

from typing import Protocol

from tasks.adapter.representation import Representation
from toolkit.bilm.backend import tf
from toolkit.config import Evaluate
from toolkit.keras.scalar_mix import ScalarMix, mixed


class Mix(Protocol):
    """From layers [B, T, L+1, 2P] to vectors [B, T, F]."""

    def __call__(self, layers: tf.Tensor) -> tf.Tensor:
        """Return the vectors of all tokens."""


class GatedMix(tf.keras.layers.Layer):
    """A mix of its own for each token: gamma * sum over j of softmax(G [h_0; …; h_L] + b)_j h_j.

    G and b start at zero, that is with equal weights, and gamma at one.

    Args:
        n_layers: L+1.
        l2_coef: by which the sum of the squares of G is multiplied in `losses`.
    """

    def __init__(self, n_layers: int, l2_coef: float) -> None:
        super().__init__()
        penalty = tf.keras.regularizers.L2(l2_coef) if l2_coef else None
        self.gate = tf.keras.layers.Dense(n_layers, kernel_initializer="zeros", kernel_regularizer=penalty)
        self.gamma = self.add_weight(shape=(), initializer="ones", name="gamma")

    def call(self, layers: tf.Tensor) -> tf.Tensor:
        """Mix the layers [B, T, L+1, 2P] to [B, T, 2P]."""
        return self.gamma * tf.reduce_sum(layers * self.weights_of_tokens(layers)[..., None], 2)

    def weights_of_tokens(self, layers: tf.Tensor) -> tf.Tensor:
        """Return the weights of the layers after the softmax, float32 [B, T, L+1]."""
        shape = tf.shape(layers)
        return tf.nn.softmax(self.gate(tf.reshape(layers, [shape[0], shape[1], layers.shape[2] * layers.shape[3]])))


def mix_of(representation: Representation, settings: Evaluate) -> Mix | None:
    """Return the mix of a representation, with weights of its own; None where no layer is in the vector."""
    if representation.form == "none":
        return None
    if representation.form == "learned":
        return ScalarMix(representation.n_layers, settings.mix_l2)
    if representation.form == "gated":
        return GatedMix(representation.n_layers, settings.mix_l2)
    if representation.form == "concat":
        size = representation.mix_width
        return lambda layers: tf.reshape(layers, [tf.shape(layers)[0], tf.shape(layers)[1], size])
    weights = representation.weights
    if sorted(weights) == [*[0.0] * (len(weights) - 1), 1.0]:
        return lambda layers: layers[:, :, weights.index(1.0)]
    return lambda layers: mixed(layers, tf.constant(weights))
