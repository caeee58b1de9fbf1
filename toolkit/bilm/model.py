"""The biLM: a token layer and L layers of forward and backward LSTM (Peters et al. 2018, section 3).

Letter for shapes: R directions, 2, or 1 of a forward model.
"""

from collections.abc import Callable

import numpy as np

from toolkit.bilm.backend import tf
from toolkit.bilm.char_cnn import CharCNN
from toolkit.bilm.lstm import LSTMLayer, run_layer
from toolkit.bilm.spec import BiLMSpec

States = tuple[tf.Tensor, tf.Tensor]


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
        return tf.gather(self.embedding, ids) if self.char_cnn is None else self.char_cnn(ids)

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
            last token of each direction.
        """
        spec = self.spec
        time = tf.shape(x)[1]
        mask = tf.transpose(tf.sequence_mask(lengths, time))[:, :, None]
        x = tf.where(tf.transpose(mask, [1, 0, 2]), x, 0.0)
        x = tf.stack([x, _reverse(x, lengths)] if spec.bidirectional else [x])
        x = tf.transpose(x, [2, 0, 1, 3])
        outputs, cells, hiddens = [], [], []
        for index, layer in enumerate(self.layers):
            y, c, h = run_layer(layer, spec, x, mask, states[0][index], states[1][index])
            x = y + x if spec.skip and index else y
            forward, *backward = tf.unstack(tf.transpose(x, [1, 2, 0, 3]), spec.directions)
            outputs.append(tf.concat([forward, *(_reverse(half, lengths) for half in backward)], -1))
            cells.append(c)
            hiddens.append(h)
        return tf.stack(outputs), (tf.stack(cells), tf.stack(hiddens))


class _Zeros:
    """Draws nothing but zeros, in the place of a random generator."""

    def normal(self, loc: float, scale: float, size: tuple[int, ...]) -> np.ndarray:
        return np.zeros(size, np.float32)

    uniform = normal


def _reverse(x: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    return tf.reverse_sequence(x, lengths, seq_axis=1, batch_axis=0)
