"""The biLM: a token layer and L layers of forward and backward LSTM (Peters et al. 2018, section 3).

Letter for shapes: R directions, 2, or 1 of a forward model.
"""

from collections.abc import Callable

import numpy as np

from toolkit.bilm.backend import tf
from toolkit.bilm.char_cnn import CharCNN, dense
from toolkit.bilm.lstm import Lookup, LSTMLayer, Restart, run_layer
from toolkit.bilm.spec import BiLMSpec

States = tuple[tf.Tensor, tf.Tensor]
Weights = list[tuple[tf.Tensor, ...]]


class BiLM(tf.Module):
    """The weights of a biLM and its inference.

    Args:
        spec: the shape.
        seed: of the initial weights; None leaves them zero, to be read from a file.
        variable: makes a variable from its value and name, as `tf.Variable` does.
    """

    def __init__(
        self, spec: BiLMSpec, seed: int | None = 1, variable: Callable[..., tf.Variable] = tf.Variable
    ) -> None:
        super().__init__()
        rng = _Zeros() if seed is None else np.random.default_rng(seed)
        self.spec = spec
        if spec.n_words is None:
            self.char_cnn, self.embedding = CharCNN(spec, rng, variable), None
        else:
            # As wide as character vectors: learns faster at first than bilm-tf's narrow table, and no worse in the end.
            table = rng.uniform(-1, 1, (spec.n_words, spec.projection_dim)).astype(np.float32)
            self.char_cnn, self.embedding = None, variable(table, name="embedding")
        self.layers = [LSTMLayer(spec, rng, variable) for _ in range(spec.n_layers)]

    def zero_state(self, batch: int | tf.Tensor) -> States:
        """Return cells [L, R, B, D] and outputs [L, R, B, P], all zero."""
        spec = self.spec
        shape = spec.n_layers, spec.directions, batch
        return tf.zeros([*shape, spec.dim]), tf.zeros([*shape, spec.projection_dim])

    @tf.function(reduce_retracing=True, autograph=False)
    def token_vectors(self, ids: tf.Tensor) -> tf.Tensor:
        """Return the context-independent vectors of words.

        Args:
            ids: int32 [U, C'] character ids (see `CharCNN`); for a word-input model int32 [U] rows of its table.

        Returns:
            float32 [U, P].
        """
        return tf.gather(dense(self.embedding), ids) if self.char_cnn is None else self.char_cnn(ids)

    @tf.function(
        autograph=False,  # plain TensorFlow, whose conversion would be most of a process's first call
        input_signature=(
            tf.TensorSpec([None, None, None], tf.float32),
            tf.TensorSpec([None], tf.int32),
            (tf.TensorSpec([None] * 4, tf.float32), tf.TensorSpec([None] * 4, tf.float32)),
        ),
    )
    def run_layers(self, x: tf.Tensor, lengths: tf.Tensor, states: States) -> tuple[tf.Tensor, States]:
        """Run the LSTM layers over token vectors.

        Args:
            x: float32 [B, T, P], token vectors of sentences with both marks, padded on the right with anything.
            lengths: int32 [B], tokens of each sentence, both marks included.
            states: cells [L, R, B, D] and outputs [L, R, B, P] to start from.

        Returns:
            float32 [L, B, T, R·P], forward half first, residual included, zero at padding; and the states behind the
            last step, which only mean something for sentences without padding.
        """
        spec = self.spec
        x = tf.stack([x, _reverse(x, lengths)] if spec.bidirectional else [x])
        layers, states = run_layers(tf.transpose(x, [2, 0, 1, 3]), states, self.lstm_weights(), spec)
        kept = tf.sequence_mask(lengths, tf.shape(layers)[1])[..., None]
        outputs = []
        for layer in tf.unstack(layers):
            forward, *backward = tf.unstack(tf.transpose(layer, [1, 2, 0, 3]), spec.directions)
            halves = tf.concat([forward, *(_reverse(half, lengths) for half in backward)], -1)
            outputs.append(tf.where(kept, halves, 0.0))
        return tf.stack(outputs), states

    def lstm_weights(self) -> Weights:
        """Return kernel, bias and, where there is one, projection of each layer."""
        return [
            tuple(part for part in (layer.kernel, layer.bias, layer.projection) if part is not None)
            for layer in self.layers
        ]


def run_layers(
    x: tf.Tensor | Lookup,
    states: States,
    weights: Weights,
    spec: BiLMSpec,
    restart: Restart | None = None,
    wrap: Callable[[Callable], Callable] = lambda function: function,
) -> tuple[tf.Tensor, States]:
    """Run all layers over sequences of which the backward half is reversed already.

    Args:
        x, weights: see `run_layer`, the weights of each layer.
        states: cells float32 [L, R, B, D] and outputs float32 [L, R, B, P] to start from.
        spec: the shape.
        restart: the steps bool [T, B] that a row takes from other states, and these, cells float32 [L, R, 1, D] and
            outputs float32 [L, R, 1, P].
        wrap: see `run_layer`.

    Returns:
        float32 [L, T, R, B, P], the backward half reversed, residual included, anything at padding; and the states
        behind the last step, float32.
    """
    outputs, cells, hiddens = [], [], []
    for index, layer in enumerate(weights):
        own = restart and (restart[0], restart[1][index], restart[2][index])
        y, (c, h) = run_layer(x, (states[0][index], states[1][index]), layer, spec, own, wrap)
        x = y + x if spec.skip and index else y
        outputs.append(tf.cast(x, tf.float32))
        cells.append(c)
        hiddens.append(tf.cast(h, tf.float32))
    return tf.stack(outputs), (tf.stack(cells), tf.stack(hiddens))


class _Zeros:
    """Draws nothing but zeros, in the place of a random generator."""

    def normal(self, loc: float, scale: float, size: tuple[int, ...]) -> np.ndarray:
        return np.zeros(size, np.float32)

    uniform = normal


def _reverse(x: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    return tf.reverse_sequence(x, lengths, seq_axis=1, batch_axis=0)
