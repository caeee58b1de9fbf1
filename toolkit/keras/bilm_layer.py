"""A biLM whose weights are those of a Keras layer."""

from collections.abc import Mapping, Sequence
from typing import Any

from toolkit.bilm.backend import tf
from toolkit.bilm.folder import Model
from toolkit.bilm.inference import Inference
from toolkit.bilm.model import BiLM
from toolkit.bilm.spec import BiLMSpec
from toolkit.bilm.weights import weights_fingerprint
from toolkit.embed.states import warm_state
from toolkit.embed.tokens import TokenTable
from toolkit.errors import UsageError
from toolkit.keras.scalar_mix import PACKAGE
from toolkit.keras.tokens import character_ids, padded_tokens, present, trimmed, well_formed
from toolkit.text.chars import char_rows
from toolkit.text.vocab import BOS, EOS, UNK


@tf.keras.utils.register_keras_serializable(PACKAGE)
class BiLMLayer(tf.keras.layers.Layer):
    """The layers of a biLM over a padded batch, each sentence from the warm state, without the marks.

    The arithmetic is that of `BiLM`, in float32 whatever the policy. The state that sentences start from is kept among
    the weights, not trained: further training leaves it as it was.

    Args:
        options: the published options for inference: the shape.
        words: of a model that reads words, its vocabulary in order; else None.

    Call arguments:
        inputs: see `ElmoEmbedding`.

    Returns (of a call):
        float32 [B, T, L+1, 2P], zero at padding.
    """

    def __init__(self, options: Mapping[str, Any], words: Sequence[str] | None = None, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "dtype": "float32", "autocast": False})
        self.supports_jit = False  # string kernels and loops over a length that is not known
        self.spec = spec = BiLMSpec.from_options(options)
        self.bilm = BiLM(spec, seed=None, variable=self._variable)
        shape = spec.n_layers, spec.directions, 1
        self.start = [
            self.add_weight(shape=(*shape, width), initializer="zeros", trainable=False, name=f"start_{name}")
            for name, width in (("cell", spec.dim), ("output", spec.projection_dim))
        ]
        self.words, self._rows = words, None
        if spec.reads_words:
            numbers = tf.range(len(words), dtype=tf.int32)
            table = tf.lookup.KeyValueTensorInitializer(tf.constant(words), numbers)
            self._rows = tf.lookup.StaticHashTable(table, words.index(UNK))
        self.built = True  # the weights depend on no input

    @classmethod
    def of(cls, model: Model, **kwargs: Any) -> "BiLMLayer":
        """Return a layer with the weights of a loaded model, copied, and the warm state that they give.

        Raises:
            UsageError: a model that reads words came without its vocabulary.
        """
        inference = Inference(model.bilm)
        start = warm_state(inference, TokenTable(inference, model.vocabulary))
        layer = cls(model.spec.to_options(), model.vocabulary.words if model.spec.reads_words else None, **kwargs)
        for own, given in zip(layer.bilm.variables, model.bilm.variables, strict=True):
            own.assign(given)
        for own, given in zip(layer.start, start, strict=True):
            own.assign(given)
        return layer

    def fingerprint(self) -> str:
        """Return the 16 hexadecimal digits that name shape and weights, as `Model.fingerprint`."""
        return weights_fingerprint(self.bilm)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Return the layers; arguments as in the class."""
        if inputs.dtype != tf.string or inputs.shape.rank == 2:
            inputs = well_formed(inputs)
        mask = present(inputs)
        lengths = tf.reduce_sum(tf.cast(mask, tf.int32), 1)
        vectors = self._token_vectors(inputs, lengths)
        start = [tf.repeat(tf.convert_to_tensor(part), tf.shape(mask)[0], axis=2) for part in self.start]
        layers, _ = self.bilm.run_layers(vectors, lengths + 2, tuple(start))
        bottom = tf.concat([vectors] * self.spec.directions, -1)[None]
        layers = tf.transpose(tf.concat([bottom, layers], 0)[:, :, 1:-1], [1, 2, 0, 3])
        layers = tf.where(mask[..., None, None], layers, 0.0)
        layers = tf.ensure_shape(layers, [None, None, self.spec.n_layers + 1, self.spec.width])
        # Keras asks for no gradient of frozen weights; this spares the way to them.
        return layers if self.trainable else tf.stop_gradient(layers)

    def compute_output_shape(self, input_shape: tuple) -> tuple:
        """Return the shape of the layers."""
        tokens = input_shape[1] if len(input_shape) > 1 else None
        return (input_shape[0], tokens, self.spec.n_layers + 1, self.spec.width)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments."""
        return {**super().get_config(), "options": self.spec.to_options(), "words": self.words}

    def _variable(self, value: tf.Tensor, name: str) -> tf.Variable:
        return self.add_weight(shape=tuple(value.shape), initializer=lambda *_, **__: value, name=name).value

    def _token_vectors(self, inputs: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        """Token vectors [B, T+2, P] with both marks, each distinct one computed once; anything at padding."""
        if inputs.dtype == tf.string:
            tokens = _with_marks(padded_tokens(inputs), lengths, tf.constant([BOS]), tf.constant([EOS]))
            words, places = tf.unique(tf.reshape(tokens, [-1]))
            ids = character_ids(words, self.spec.max_characters) if self._rows is None else self._rows.lookup(words)
        else:
            marks = tf.constant(char_rows([BOS, EOS], self.spec.max_characters))
            tokens = _with_marks(tf.cast(inputs, tf.int32), lengths, marks[:1], marks[1:])
            ids, places = tf.raw_ops.UniqueV2(x=tf.reshape(tokens, [-1, self.spec.max_characters]), axis=[0])
        if self._rows is None:
            ids = trimmed(ids, self.spec.widest_filter)
        vectors = tf.gather(self.bilm.token_vectors(ids), places)
        return tf.reshape(vectors, [*tf.unstack(tf.shape(tokens)[:2]), self.spec.projection_dim])

    def check(self, inputs: tf.Tensor) -> None:
        """Check what a batch is.

        Raises:
            UsageError: the inputs are neither strings nor character ids, or of another shape.
        """
        rank, dtype = len(inputs.shape), tf.as_dtype(inputs.dtype)
        c = self.spec.max_characters
        if dtype == tf.string and rank in (1, 2):
            return
        if self.spec.reads_words:
            raise UsageError(f"this biLM reads words: give strings [B, T] or [B], not {dtype.name} of rank {rank}")
        if not dtype.is_integer or rank != 3 or inputs.shape[-1] not in (None, c):
            raise UsageError(
                f"give strings [B, T] or [B], or character ids [B, T, {c}]; got {dtype.name} {tuple(inputs.shape)}"
            )


def _with_marks(tokens: tf.Tensor, lengths: tf.Tensor, begin: tf.Tensor, end: tf.Tensor) -> tf.Tensor:
    """Put one mark before the tokens [B, T, …] and one behind the last of each sentence: [B, T+2, …]."""
    blank = tf.zeros_like(tokens[:, :1]) if tokens.dtype != tf.string else tf.fill([tf.shape(tokens)[0], 1], "")
    tokens = tf.concat([tokens, blank], 1)
    last = tf.range(tf.shape(tokens)[1]) == lengths[:, None]
    tokens = tf.where(last if tokens.shape.rank == 2 else last[..., None], end, tokens)
    return tf.concat([tf.broadcast_to(begin, tf.shape(tokens[:, :1])), tokens], 1)
