"""Perplexity of held-out text under the full softmax, and under unigrams for comparison."""

import math
from dataclasses import dataclass

import numpy as np

from toolkit.bilm.backend import tf
from toolkit.bilm.softmax import full_softmax_nll
from toolkit.pretrain.batches import Lexicon, marked_texts, unique_words
from toolkit.pretrain.graph import TrainingGraph
from toolkit.text.prepare import TokenStream

ROWS = 16


@dataclass(frozen=True)
class Perplexity:
    """Perplexity with the full softmax; out-of-vocabulary words count as `<UNK>`.

    Attributes:
        forward: of the forward direction.
        backward: of the other; None for a forward model.
        n: targets a direction, end-of-sentence marks included.
    """

    forward: float
    backward: float | None
    n: int

    @property
    def mean(self) -> float:
        """The exponential of the directions' mean negative log-likelihood."""
        return self.forward if self.backward is None else math.sqrt(self.forward * self.backward)

    @property
    def sides(self) -> dict[str, float]:
        """The figure of each direction that the model has, by its name."""
        sides = {"forward": self.forward, "backward": self.backward}
        return {side: value for side, value in sides.items() if value is not None}

    @property
    def metrics(self) -> dict[str, float]:
        """The figures by the names that they have in metrics.jsonl and results.json."""
        return {"perplexity": self.mean} | {f"perplexity_{side}": value for side, value in self.sides.items()}

    def __str__(self) -> str:
        sides = ", ".join(f"{side} {value:,.1f}" for side, value in self.sides.items())
        return f"(full softmax, n = {self.n:,}) {self.mean:,.1f}, {sides}"

    def document(self) -> dict[str, float | int | str | None]:
        """Return the figures as JSON."""
        return {"forward": self.forward, "backward": self.backward, "mean": self.mean, "n": self.n, "kind": "full"}


class Validation:
    """Held-out text, read in a few parallel rows with carried states; every target counts once.

    Args:
        graph: gives the weights, the forward pass and its dtype.
        stream: the held-out text; its first sentences up to `tokens` tokens are used.
        lexicon: the words of the corpus.
        tokens: how many tokens to read.
    """

    def __init__(self, graph: TrainingGraph, stream: TokenStream, lexicon: Lexicon, tokens: int) -> None:
        self.graph, self.lexicon = graph, lexicon
        sentences = max(1, int(np.searchsorted(stream.starts, tokens, side="right")) - 1)
        order = np.arange(min(sentences, stream.n_sentences))
        self.texts = marked_texts(stream, order, lexicon, graph.bilm.spec.directions)
        self.row_length = -(-len(self.texts[0]) // ROWS)
        self._forward = tf.function(self._step, reduce_retracing=True, autograph=False)

    def targets(self) -> np.ndarray:
        """Return the forward direction's targets as ids of the softmax's vocabulary, int32 [n]."""
        return self.lexicon.targets[self.texts[0].read(np.arange(len(self.texts[0])))[1]]

    def run(self) -> Perplexity:
        """Measure the perplexity of each direction, with the averaged weights if training keeps them."""
        with self.graph.averages.in_place():
            return self._run()

    def _run(self) -> Perplexity:
        graph, unroll = self.graph, self.graph.settings.unroll_steps
        states = graph.bilm.zero_state(ROWS)
        states = states[0], tf.cast(states[1], graph.dtype)
        total, n = np.zeros(len(self.texts)), len(self.texts[0])
        for start in range(0, self.row_length, unroll):
            columns = start + np.arange(unroll)
            positions = columns[:, None] + self.row_length * np.arange(ROWS)
            valid = (columns[:, None] < self.row_length) & (positions < n)
            read = [text.read(np.minimum(positions, n - 1)) for text in self.texts]
            inputs, targets = (np.stack([direction[i] for direction in read]) for i in range(2))
            groups, places = unique_words(self.lexicon, inputs, graph.bilm.spec)
            targets = self.lexicon.targets[targets].reshape(len(self.texts), -1)
            nll, states = self._forward(groups, places.transpose(1, 0, 2), targets, states)
            total += np.where(valid.ravel(), nll.numpy(), 0.0).sum(1, dtype=np.float64)
        with np.errstate(over="ignore"):  # infinite: the trainer judges it
            forward, *backward = np.exp(total / n).tolist()
        return Perplexity(forward, backward[0] if backward else None, n)

    def _step(self, groups: tuple, inputs: tf.Tensor, targets: tf.Tensor, states: tuple) -> tuple:
        top, states = self.graph.forward(groups, inputs, states, None)
        h = tf.transpose(tf.cast(top, tf.float32), [1, 0, 2, 3])
        spec = self.graph.bilm.spec
        h = tf.reshape(h, [spec.directions, -1, spec.projection_dim])
        weight, bias = self.graph.softmax
        return tf.stack([full_softmax_nll(h[d], weight, bias, targets[d]) for d in range(spec.directions)]), states


def unigram_perplexity(lexicon: Lexicon, counts: np.ndarray, sentences: int, size: int, targets: np.ndarray) -> float:
    """Return the perplexity of targets under the training text's unigrams, add-one smoothed.

    Args:
        lexicon: maps the corpus's words to the vocabulary.
        counts: int64 [n], of the corpus's words in the training text.
        sentences: in the training text, each of which ends in one mark.
        size: V.
        targets: int32 [n], vocabulary ids.
    """
    totals = np.bincount(lexicon.targets[: len(counts)], weights=counts, minlength=size)
    totals[lexicon.targets[-1]] += sentences
    logs = np.log((totals + 1.0) / (totals.sum() + size))
    return float(np.exp(-logs[targets].mean()))
