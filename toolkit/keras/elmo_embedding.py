"""The Keras layer that puts ELMo under a network: tokens in, mixes of a biLM's layers out."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolkit.bilm.backend import tf
from toolkit.bilm.folder import Model, load_model
from toolkit.config import resolve
from toolkit.embed.models import config_for, resolve_model
from toolkit.errors import UsageError
from toolkit.keras.bilm_layer import BiLMLayer
from toolkit.keras.scalar_mix import PACKAGE, ScalarMix
from toolkit.keras.tokens import present


@tf.keras.utils.register_keras_serializable(PACKAGE)
class ElmoEmbedding(tf.keras.layers.Layer):
    """ELMo vectors of tokens: learned mixes of the layers of a biLM (Peters et al. 2018, equation 1).

    Every sentence starts from the warm state of the weights as they were loaded, so that its layers are those of
    `toolkit.load_bilm(…).embed`. The marks of a sentence are added inside and removed again. Frozen or not, the
    biLM's weights are part of the layer: `model.save` writes them into the .keras file, which then needs neither the
    model's folder nor anything but `import toolkit; toolkit.ElmoEmbedding` before `load_model`.

    The biLM is frozen unless `fine_tune` says otherwise; the mixes learn in both cases. `trainable` of the whole layer
    or model sets, as always in Keras, what lies below it too; `layer.bilm.trainable` is that of the biLM alone.

    Args:
        model: a run, model folder or zip as `toolkit.load_bilm` takes it; a loaded `Model`; or what `get_config` gives
            for it, `{"options": …, "words": …}`, a shape whose weights are zero until they are loaded.
        n_outputs: mixes, each with weights of its own.
        l2_coef: penalty on the mixes' weights, see `ScalarMix`.
        layer_norm: normalise the layers over the batch before each mix, see `ScalarMix`.
        top_only: the top layer times gamma in place of a mix.
        dropout: rate of dropout behind each mix.
        fine_tune: whether the biLM's weights learn too; `optimizer` gives them a learning rate of their own.

    Call arguments:
        inputs: one of: string [B, T], tokens padded on the right with ""; string [B], sentences whose tokens are parted
            by white space as in `str.split`; int [B, T, C], character ids as `toolkit.text.chars.char_rows` makes them
            (those of published models, 0 a mask), rows of zeros as padding.
        training: whether dropout is on.

    Returns (of a call):
        [B, T, 2P] in the layer's compute dtype, zero at padding, with a mask bool [B, T] that following layers see; a
        list of them where `n_outputs` is above 1. A forward model gives P for 2P.

    Raises:
        UsageError: the model is unknown or lacks its vocabulary, Keras runs on another backend than TensorFlow, or the
            inputs are none of the three.
        FormatError: the model is damaged.
    """

    def __init__(
        self,
        model: str | Path | Model | Mapping[str, Any],
        n_outputs: int = 1,
        l2_coef: float = 0.0,
        layer_norm: bool = False,
        top_only: bool = False,
        dropout: float = 0.0,
        fine_tune: bool = False,
        **kwargs: Any,
    ) -> None:
        if n_outputs < 1:
            raise UsageError(f"n_outputs is {n_outputs}: an ElmoEmbedding has at least one")
        super().__init__(**{**kwargs, "autocast": False})
        self.supports_jit = False
        self.n_outputs = n_outputs
        self._mix = {"l2_coef": l2_coef, "layer_norm": layer_norm, "top_only": top_only}
        with tf.keras.name_scope(self.name):
            self.bilm = _bilm(model)
            self.mixes = [
                ScalarMix(self.bilm.spec.n_layers + 1, **self._mix, dtype="float32", name=f"mix_{number}")
                for number in range(n_outputs)
            ]
        self.bilm.trainable = fine_tune and self.trainable
        for mix in self.mixes:
            mix.trainable = self.trainable  # Keras tells what lies below of later changes only
        self.dropout = tf.keras.layers.Dropout(dropout, dtype="float32")
        self._mask = TokenMask()
        self.built = True  # the weights depend on no input

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor | list[tf.Tensor]:
        """Return the mixes; arguments as in the class."""
        self.bilm.check(inputs)
        layers, mask = self.bilm(inputs), present(inputs)
        keep = mask[..., None]
        mixes = [tf.where(keep, mix(layers, mask=mask), 0.0) for mix in self.mixes]
        mixes = [tf.cast(self.dropout(mix, training=training), self.compute_dtype) for mix in mixes]
        return mixes[0] if self.n_outputs == 1 else mixes

    def compute_mask(self, inputs: tf.Tensor, previous_mask: Any = None) -> Any:
        """Return where tokens are, bool [B, T], for each output; `previous_mask` is not looked at."""
        mask = self._mask(inputs)
        return mask if self.n_outputs == 1 else [mask] * self.n_outputs

    def compute_output_shape(self, input_shape: tuple) -> Any:
        """Return the shape of each output."""
        tokens = input_shape[1] if len(input_shape) > 1 else None
        shape = (input_shape[0], tokens, self.bilm.spec.width)
        return shape if self.n_outputs == 1 else [shape] * self.n_outputs

    def optimizer(self, optimizer: Any, bilm_learning_rate: float) -> Any:
        """Return an optimizer that trains the biLM at a rate of its own and all else as the given one.

        A factor on the gradients would not do: the steps of Adam do not depend on it.

        Args:
            optimizer: of Keras, not yet built; the biLM gets a copy of it that differs in the learning rate.
            bilm_learning_rate: of the biLM's weights.

        Returns:
            a `keras.optimizers.MultiOptimizer`.
        """
        own = {**optimizer.get_config(), "learning_rate": bilm_learning_rate, "name": f"{optimizer.name}_bilm"}
        scope = self.bilm.weights[0].path.rpartition("/")[0]
        rates = tf.keras.optimizers.OptimizerMap(
            optimizer, {f"{re.escape(scope)}/.*": type(optimizer).from_config(own)}
        )
        return tf.keras.optimizers.MultiOptimizer(rates)

    def fingerprint(self) -> str:
        """Return the 16 hexadecimal digits that name the biLM's shape and weights, as in its model's card."""
        return self.bilm.fingerprint()

    def get_config(self) -> dict[str, Any]:
        """Return the arguments, the model as its shape."""
        model = {"options": self.bilm.spec.to_options(), "words": self.bilm.words}
        own = {"model": model, "n_outputs": self.n_outputs, **self._mix}
        own |= {"dropout": self.dropout.rate, "fine_tune": self.bilm.trainable}
        return {**super().get_config(), **own}


@tf.keras.utils.register_keras_serializable(PACKAGE)
class TokenMask(tf.keras.layers.Layer):
    """Where the tokens of a batch are, bool [B, T]; inputs as of `ElmoEmbedding`.

    A layer, because Keras asks for a mask while it only plans a network too.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.built = True

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Return the mask."""
        return present(inputs)

    def compute_output_spec(self, inputs: Any) -> Any:
        """Return the mask's shape and dtype."""
        tokens = inputs.shape[1] if len(inputs.shape) > 1 else None
        return tf.keras.KerasTensor((inputs.shape[0], tokens), "bool")


def _bilm(model: str | Path | Model | Mapping[str, Any]) -> BiLMLayer:
    if tf.keras.backend.backend() != "tensorflow":
        raise UsageError(
            f"Keras runs on the backend {tf.keras.backend.backend()!r}: set KERAS_BACKEND=tensorflow before its import"
        )
    if isinstance(model, Mapping):
        return BiLMLayer(**model, name="bilm")
    if not isinstance(model, Model):
        model = load_model(resolve_model(str(model), resolve(config_for(model)).settings.paths.runs))
    return BiLMLayer.of(model, name="bilm")
