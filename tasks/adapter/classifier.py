"""A representation with a head behind it: from the layers of sentences to scores of labels."""

import numpy as np

from tasks.adapter.head import Head
from tasks.adapter.mixing import GatedMix, mix_of
from tasks.adapter.representation import Representation
from tasks.task import Kind
from toolkit.bilm.backend import tf
from toolkit.bilm.char_cnn import dense
from toolkit.config import Evaluate
from toolkit.keras.bilm_layer import BiLMLayer
from toolkit.keras.scalar_mix import ScalarMix


class Classifier(tf.keras.layers.Layer):
    """Scores sentences, pairs of sentences or tokens; the biLM below it is frozen, or trained with it.

    Args:
        representation: what stands for a token.
        head: the class of the head.
        n_labels: how many labels there are.
        settings: of the head.
        seed: of all initial weights and all dropout.
        kind: what is labelled.
        table: float32 [words, D], vectors that stand for x_k in place of the model's own.
        train_table: whether these are trained with the classifier.
        bilm: is trained with the classifier; None where the layers come from elsewhere.
        bag_width: K, decision values of a bag of words beside the states that the head scores; 0 for none.

    Call arguments:
        inputs: layers, float16 or float32 [B, T, L+1, 2P], anything at padding; with a biLM tokens, string [B, T], ""
            at padding. Of pairs first all first sentences, then all second ones, and B is twice the number of pairs.
        lengths: int32 [B], the true tokens.
        words: int32 [B, T], rows of `table`; not needed without one.
        positions: int32 [B], where the word in question stands; -1, as by default, where there is none.
        bag: float32 [B, K], of pairs [B / 2, K]: the decision values, which count linearly in the scores of any head.
        training: whether dropout is on.

    Returns (of a call):
        float32 [B, n_labels] before the softmax: [B / 2, n_labels] of pairs, [B, T, n_labels] of tokens.

    Attributes:
        signature: of the first five arguments, layers in float16, batch and length left open: one graph for all.
        probabilities: from these arguments to the result behind the softmax, as a graph traced once.
        gate_weights: from inputs to the weights of each gated mix by place, float32 [B, T, L+1], as a graph.
        mixes: by place, "input" and "output".
        learns_below: whether there are weights below the head.
    """

    def __init__(
        self,
        representation: Representation,
        head: type[Head],
        n_labels: int,
        settings: Evaluate,
        seed: int,
        kind: Kind = "sentence",
        table: np.ndarray | None = None,
        train_table: bool = False,
        bilm: BiLMLayer | None = None,
        bag_width: int = 0,
    ) -> None:
        super().__init__(dtype="float32", autocast=False)
        self.representation, self.kind = representation, kind
        self.bilm = bilm
        self.learns_below = representation.learned or train_table or bilm is not None
        self.mixes = {place: mix_of(representation, settings) for place in representation.places}
        self.table = None if table is None else tf.constant(table, tf.float32)
        if train_table:
            self.table = self.add_weight(shape=table.shape, name="table", initializer="zeros")
            self.table.assign(table)
        self.head = head(n_labels, settings, np.random.default_rng(seed), kind)
        self.of_bag = tf.keras.layers.Dense(n_labels, use_bias=False) if bag_width else None
        rows = 2 if kind == "pair" else 1
        shape = (representation.n_layers, representation.width)
        first = tf.zeros((rows, 1, *shape)) if bilm is None else tf.fill([rows, 1], "a")
        self(first, np.ones(rows, np.int32), bag=tf.zeros((1, bag_width)))
        if self.of_bag is not None:  # training starts from what the bag says
            start = np.eye(n_labels) if bag_width == n_labels else [[-0.5, 0.5]]
            self.of_bag.set_weights([np.array(start, np.float32)])
        self.signature = (
            tf.TensorSpec([None, None, *shape], tf.float16) if bilm is None else tf.TensorSpec([None, None], tf.string),
            tf.TensorSpec([None], tf.int32),
            tf.TensorSpec([None, None], tf.int32),
            tf.TensorSpec([None], tf.int32),
            tf.TensorSpec([None, bag_width], tf.float32),
        )
        self.probabilities = tf.function(
            lambda *batch: tf.nn.softmax(self(*batch)), input_signature=self.signature, autograph=False
        )
        self.gate_weights = tf.function(self._gate_weights, input_signature=self.signature[:1], autograph=False)

    def call(
        self,
        inputs: tf.Tensor,
        lengths: tf.Tensor,
        words: tf.Tensor | None = None,
        positions: tf.Tensor | None = None,
        bag: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf.Tensor:
        """Score sentences; arguments as in the class."""
        mask, positions = self._mask_and_positions(inputs, lengths, positions)
        layers = self._layers_of(inputs)
        vectors, behind = self.vectors(layers, words), self._behind(layers)
        scores = self.head(vectors, mask, behind=behind, positions=positions, training=training)
        return scores if self.of_bag is None else scores + self.of_bag(bag)

    def inputs_of_scores(
        self, inputs: tf.Tensor, lengths: tf.Tensor, words: tf.Tensor, positions: tf.Tensor, bag: tf.Tensor
    ) -> tf.Tensor:
        """Return what a linear head's scores are a linear function of; arguments as in a call."""
        mask, positions = self._mask_and_positions(inputs, lengths, positions)
        features = self.head.features(self.vectors(self._layers_of(inputs), words), mask, positions)
        return features if self.of_bag is None else tf.concat([features, bag], -1)

    def linear(self) -> tuple[np.ndarray, np.ndarray]:
        """Return kernel and bias of a linear head, rows as in `inputs_of_scores`."""
        kernel, bias = self.head.scores.get_weights()
        return (kernel if self.of_bag is None else np.concatenate([kernel, self.of_bag.get_weights()[0]])), bias

    def set_linear(self, kernel: np.ndarray, bias: np.ndarray) -> None:
        """Set kernel and bias of a linear head, rows as in `inputs_of_scores`."""
        width = self.head.scores.kernel.shape[0]
        self.head.scores.set_weights([kernel[:width], bias])
        if self.of_bag is not None:
            self.of_bag.set_weights([kernel[width:]])

    @staticmethod
    def _mask_and_positions(inputs: tf.Tensor, lengths: tf.Tensor, positions: tf.Tensor | None) -> tuple:
        none = tf.fill([tf.shape(inputs)[0]], -1)
        return tf.sequence_mask(lengths, tf.shape(inputs)[1]), none if positions is None else positions

    def _layers_of(self, inputs: tf.Tensor) -> tf.Tensor:
        return tf.cast(inputs, tf.float32) if self.bilm is None else self.bilm(inputs)

    def vectors(self, layers: tf.Tensor, words: tf.Tensor | None = None) -> tf.Tensor:
        """Return x_k and the mix side by side, [B, T, F]; layer 0 begins with the model's x_k."""
        parts = []
        if self.representation.x_k and self.table is None:
            parts.append(layers[:, :, 0, : self.representation.token_width])
        elif self.representation.x_k:
            words = tf.zeros(tf.shape(layers)[:2], tf.int32) if words is None else words
            parts.append(tf.gather(dense(self.table), words))
        if "input" in self.mixes:
            parts.append(self.mixes["input"](layers))
        return tf.concat(parts, -1)

    def _behind(self, layers: tf.Tensor) -> tf.Tensor | None:
        return self.mixes["output"](layers) if "output" in self.mixes else None

    def weights_by_place(self) -> dict[str, tuple[list[float], float]]:
        """Return the weights of the layers as they are now and gamma, by place; no gates, which differ by token."""
        found = {}
        for place, mix in self.mixes.items():
            if isinstance(mix, ScalarMix):
                found[place] = mix.weights_of_layers().numpy().tolist(), float(tf.convert_to_tensor(mix.gamma))
            elif self.representation.weights is not None:
                found[place] = list(self.representation.weights), 1.0
        return found

    def gates(self) -> dict[str, GatedMix]:
        """Return the gated mixes by place."""
        return {place: mix for place, mix in self.mixes.items() if isinstance(mix, GatedMix)}

    def _gate_weights(self, inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        layers = self._layers_of(inputs)
        return {place: gate.weights_of_tokens(layers) for place, gate in self.gates().items()}
