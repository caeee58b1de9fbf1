"""The learned mix of a biLM's layers."""

from typing import Any

from toolkit.bilm.backend import tf

PACKAGE = "elmo_toolkit"  # under which Keras files name the layers of this folder


@tf.keras.utils.register_keras_serializable(PACKAGE)
class ScalarMix(tf.keras.layers.Layer):
    """The learned mix of equation 1 of Peters et al. (2018): gamma * sum over j of softmax(w)_j h_j.

    The w start at zero, that is with equal weights, and gamma at one. The penalty on w is that of bilm-tf's
    `weight_layers`: since the softmax takes no notice of a constant, it draws the weights towards equal ones. It is
    among `losses`, where `fit` finds it.

    Args:
        n_layers: L+1.
        l2_coef: lambda, by which the sum of the squares of w is multiplied in `losses`.
        layer_norm: normalise each layer before the mix, as bilm-tf's `do_layer_norm`: one mean and one variance over
            all unmasked positions and dimensions of the batch, so that a result depends on the batch.
        top_only: the top layer times gamma; there is no w then.

    Call arguments:
        layers: float [B, T, L+1, 2P].
        mask: bool [B, T], what `layer_norm` counts; by default the one that Keras attached to `layers`, else all.

    Returns (of a call):
        [B, T, 2P] in the dtype of `layers`. The mask is passed on.
    """

    def __init__(
        self, n_layers: int, l2_coef: float = 0.0, layer_norm: bool = False, top_only: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.n_layers, self.l2_coef, self.layer_norm, self.top_only = n_layers, l2_coef, layer_norm, top_only
        self.supports_masking = True
        penalty = tf.keras.regularizers.L2(l2_coef) if l2_coef else None
        self.raw = None
        if not top_only:
            self.raw = self.add_weight(shape=(n_layers,), initializer="zeros", regularizer=penalty, name="raw")
        self.gamma = self.add_weight(shape=(), initializer="ones", name="gamma")
        self.built = True  # the weights depend on no input

    def call(self, layers: tf.Tensor, mask: tf.Tensor | None = None) -> tf.Tensor:
        """Mix the layers; arguments as in the class."""
        if self.top_only:
            layers = layers[:, :, -1:]
        if self.layer_norm:
            layers = normalised(layers, mask)
        return self.gamma * (layers[:, :, 0] if self.top_only else mixed(layers, self.weights_of_layers()))

    def compute_output_shape(self, input_shape: tuple) -> tuple:
        """Return the shape of [B, T, 2P]."""
        return (*input_shape[:2], input_shape[-1])

    def weights_of_layers(self) -> tf.Tensor:
        """Return the weights after the softmax, float32 [L+1]; they sum to 1."""
        if self.raw is None:
            return tf.one_hot(self.n_layers - 1, self.n_layers)
        return tf.nn.softmax(tf.convert_to_tensor(self.raw))

    def get_config(self) -> dict[str, Any]:
        """Return the arguments."""
        own = {"n_layers": self.n_layers, "l2_coef": self.l2_coef, "layer_norm": self.layer_norm}
        return {**super().get_config(), **own, "top_only": self.top_only}


def mixed(layers: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Return the sum of [B, T, L+1, 2P] over its layers, weighted by [L+1]."""
    # A term a layer: forward and back this takes half the time of a product with a sum over the layers' axis.
    return tf.add_n([layers[:, :, layer] * weights[layer] for layer in range(layers.shape[2])])


def normalised(layers: tf.Tensor, mask: tf.Tensor | None) -> tf.Tensor:
    """Give each layer, over the unmasked positions and the dimensions of the batch, mean 0 and variance 1.

    Args:
        layers: float [B, T, L+1, 2P].
        mask: bool [B, T]; None counts all positions.
    """
    keep = (
        tf.ones_like(layers) if mask is None else tf.zeros_like(layers) + tf.cast(mask, layers.dtype)[..., None, None]
    )
    n = tf.reduce_sum(keep, [0, 1, 3], keepdims=True)
    mean = tf.math.divide_no_nan(tf.reduce_sum(layers * keep, [0, 1, 3], keepdims=True), n)
    variance = tf.math.divide_no_nan(tf.reduce_sum(tf.square((layers - mean) * keep), [0, 1, 3], keepdims=True), n)
    return tf.nn.batch_normalization(layers, mean, variance, None, None, 1e-12)
