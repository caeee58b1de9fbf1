"""A task's examples as arrays: batches of layers, targets, and from probabilities to answers and scores."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tasks.adapter.features import Features
from tasks.adapter.finetuning import Sentences
from tasks.task import Example, Kind, Task
from toolkit.metrics import METRICS, TAG_SEPARATOR, CountMetric

Batch = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # as `Classifier` takes it
UNSCORED = -1  # the target at padding


@dataclass(frozen=True)
class Dataset:
    """All examples of a task, the parts one behind the other.

    Attributes:
        kind: what is labelled.
        labels: in the order of the targets.
        metric: of the score.
        features: the layers of all sentences, or the sentences, those of a pair one behind the other.
        targets: int32, the index of the label of each example, or in a task of tags of each token.
        positions: int32 [sentences], where the word in question stands, else -1.
        gold: texts [examples], as `toolkit.metrics` takes them.
        words: int32 [tokens], each token's row in a table of vectors; zeros without one.
        bag: float32 [examples, K], decision values of a bag of words; K = 0 without one.
    """

    kind: Kind
    labels: tuple[str, ...]
    metric: CountMetric
    features: Features | Sentences
    targets: np.ndarray
    positions: np.ndarray
    gold: np.ndarray
    words: np.ndarray
    bag: np.ndarray

    @classmethod
    def of(cls, task: Task, examples: Sequence[Example], features: Features | Sentences) -> "Dataset":
        """Put the examples of a task beside the layers of their sentences, or beside the sentences."""
        number = {label: index for index, label in enumerate(task.labels)}
        if task.kind == "tagging":
            targets = [number[tag] for example in examples for tag in example.tags]
        else:
            targets = [number[example.label] for example in examples]
        positions = [place for e in examples for place in (e.positions or (UNSCORED,) * len(e.sentences))]
        gold = np.array([example.gold for example in examples], object)
        words = np.zeros(features.offsets[-1], np.int32)
        bag = np.zeros((len(examples), 0), np.float32)
        arrays = (np.array(targets, np.int32), np.array(positions, np.int32), gold, words, bag)
        return cls(task.kind, task.labels, METRICS[task.metric], features, *arrays)

    def with_words(self, words: np.ndarray) -> "Dataset":
        """Return the same examples with other rows of a table."""
        return replace(self, words=words)

    def with_bag(self, rows: Sequence[np.ndarray], values: Sequence[np.ndarray]) -> "Dataset":
        """Return the same examples with decision values of a bag of words for some of them, zeros for the others."""
        bag = np.zeros((len(self.gold), values[0].shape[1]), np.float32)
        for part, found in zip(rows, values, strict=True):
            bag[part] = found
        return replace(self, bag=bag)

    @cached_property
    def lengths(self) -> np.ndarray:
        """Tokens of each example, of a pair those of the longer sentence: int64 [examples]."""
        lengths = self.features.lengths
        return lengths.reshape(-1, 2).max(1) if self.kind == "pair" else lengths

    def tokens_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the places of all tokens of some examples."""
        if self.kind == "pair":
            rows = np.concatenate([2 * rows, 2 * rows + 1])
        borders = zip(self.features.offsets[rows], self.features.offsets[rows + 1], strict=True)
        return np.concatenate([np.arange(start, stop) for start, stop in borders])

    def batch(self, rows: np.ndarray) -> Batch:
        """Return inputs, lengths, words, positions and bag of some examples, of pairs all first sentences first."""
        bag = self.bag[rows]
        if self.kind == "pair":
            rows = np.concatenate([2 * rows, 2 * rows + 1])
        inputs, lengths = self.features.batch(rows)
        return inputs, lengths, self._padded(self.words, rows, lengths, 0), self.positions[rows], bag

    def targets_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the targets of some examples, int32 [B], or of their tokens [B, T] with -1 at padding."""
        if self.kind != "tagging":
            return self.targets[rows]
        return self._padded(self.targets, rows, self.features.lengths[rows], UNSCORED)

    def _padded(self, values: np.ndarray, rows: np.ndarray, lengths: np.ndarray, padding: int) -> np.ndarray:
        """Return those of a value a token that belong to some sentences, int32 [B, T]."""
        found = np.full((len(rows), lengths.max()), padding, np.int32)
        inside = np.arange(found.shape[1]) < lengths[:, None]
        found[inside] = values[(self.features.offsets[rows][:, None] + np.arange(found.shape[1]))[inside]]
        return found

    def flat_targets(self, rows: np.ndarray) -> np.ndarray:
        """Return the targets of some examples, or of all their tokens one behind the other."""
        targets = self.targets_of(rows)
        return targets[targets != UNSCORED]

    def apply(self, function: Callable[..., Any], rows: np.ndarray, batch_size: int) -> list[np.ndarray]:
        """Apply a function of batches to some examples, those of like length together.

        Args:
            function: from a batch to a tensor [B, …], or in a task of tags [B, T, …].

        Returns:
            an array an example, in the order of the rows: [1, …], or [tokens, …].
        """
        order = np.argsort(self.lengths[rows], kind="stable")
        found: list[np.ndarray] = [np.empty(0)] * len(rows)
        for start in range(0, len(rows), batch_size):
            places = order[start : start + batch_size]
            for place, result in zip(places, function(*self.batch(rows[places])).numpy(), strict=True):
                tagging = self.kind == "tagging"
                found[place] = result[: self.lengths[rows[place]]] if tagging else result[None]
        return found

    def answers(self, probabilities: Sequence[np.ndarray]) -> np.ndarray:
        """Return the most probable labels as texts, from probabilities [labels] an example, or [tokens, labels]."""
        return answers_of(self.kind, self.labels, probabilities)

    def score(self, rows: np.ndarray, answers: np.ndarray) -> float:
        """Return the task's metric of answers to some examples."""
        return float(self.metric.values(self.gold[rows], answers[None])[0])


def answers_of(kind: Kind, labels: Sequence[str], probabilities: Sequence[np.ndarray]) -> np.ndarray:
    """Return the most probable labels as texts, from probabilities [labels] an example, or [tokens, labels]."""
    if kind == "tagging":
        return np.array(
            [TAG_SEPARATOR.join(labels[index] for index in one.argmax(-1)) for one in probabilities], object
        )
    return np.array(labels, object)[np.argmax(probabilities, -1)]
