"""What a task is: labelled examples in splits or folds, and where they come from."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from toolkit.errors import DataError
from toolkit.files import fingerprint
from toolkit.metrics import TAG_SEPARATOR

Kind = Literal["sentence", "pair", "tagging"]


@dataclass(frozen=True)
class Example:
    """What one answer is asked for: a sentence, two sentences, or the tokens of a sentence.

    Attributes:
        id: names the example within its task, the same at every load.
        tokens: at least one.
        label: one of the task's labels; "" in a task of kind "tagging".
        second: the tokens of the second sentence in a task of kind "pair", else none.
        positions: where the word in question stands in `tokens` and in `second`, counted from 0; None where the pair
            is about the whole sentences.
        tags: one of the task's labels for each token in a task of kind "tagging", else none.
    """

    id: str
    tokens: tuple[str, ...]
    label: str = ""
    second: tuple[str, ...] = ()
    positions: tuple[int, int] | None = None
    tags: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[tuple[str, ...], ...]:
        """The one sentence, or the two of a pair."""
        return (self.tokens, self.second) if self.second else (self.tokens,)

    @property
    def gold(self) -> str:
        """The right answer as `toolkit.metrics` takes it: the label, or the tags with tabs between."""
        return TAG_SEPARATOR.join(self.tags) if self.tags else self.label

    def identity(self) -> list[object]:
        """Return what a fingerprint covers; a sentence without tags has the same as in version 0.1."""
        more = [self.second, self.positions, self.tags]
        return [self.id, self.tokens, self.label, *(more if any(more) else ())]


@dataclass(frozen=True)
class Round:
    """One training and what it is scored on, by the names of `Splits.parts`.

    Attributes:
        train: parts learned from.
        dev, test: the parts selected on and reported on.
    """

    train: tuple[str, ...]
    dev: str
    test: str


@dataclass(frozen=True)
class Splits:
    """The examples of a task; the ids of one split are distinct.

    A task without official splits has `folds` instead of train, dev and test: each example is in one fold, and its
    score is that of the predictions for all examples, each made by the round that did not train on it.

    Attributes:
        train, dev, test: what is learned from, selected on, reported on.
        description: where the examples lie and how the splits came about, in one sentence.
        folds: of a cross-validation, else none.
    """

    train: list[Example]
    dev: list[Example]
    test: list[Example]
    description: str
    folds: tuple[list[Example], ...] = ()

    def parts(self) -> dict[str, list[Example]]:
        """Return the examples by part: train, dev and test, or fold-1, fold-2, …"""
        if self.folds:
            return {f"fold-{number}": fold for number, fold in enumerate(self.folds, 1)}
        return {"train": self.train, "dev": self.dev, "test": self.test}

    def rounds(self) -> list[Round]:
        """Return the trainings that a score stands for: one, or of k folds k, each selecting on the fold behind."""
        names = list(self.parts())
        if not self.folds:
            return [Round(("train",), "dev", "test")]
        turned = [[*names[start:], *names[:start]] for start in range(len(names))]
        return [Round(tuple(others), dev, test) for test, dev, *others in turned]

    @property
    def sizes(self) -> dict[str, int]:
        """The number of examples by split, or of all folds as "all"."""
        if self.folds:
            return {"all": sum(map(len, self.folds))}
        return {name: len(part) for name, part in self.parts().items()}

    @cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that name ids, tokens and labels of all splits."""
        return fingerprint([[example.identity() for example in part] for part in self.parts().values()])


class Place(Protocol):
    """Where data can lie.

    Attributes:
        fetchable: whether `obtain` can download it.
    """

    fetchable: ClassVar[bool]

    def find(self, data: Path | None, cache: Path) -> Path | None:
        """Return the file or folder, None where it is not there.

        Raises:
            DataError: it is there but incomplete or not the published one.
        """

    def obtain(self, cache: Path) -> Path:
        """Fetch the data into the cache and return its path.

        Raises:
            DataError: that is not possible; the message says what the user can do.
        """

    def describe(self) -> Mapping[str, str | int]:
        """Return what is known of the data: `place` in words, and of a file `file`, `bytes`, `sha256`, `url`."""


@dataclass(frozen=True)
class Task:
    """A task: what it asks, whose it is, and how its examples are read.

    A file of this folder that sets `TASK` to one of these adds a task; nothing else has to be told.

    Attributes:
        name: as on the command line and as the file is called.
        version: to be raised when the same data would give other examples.
        title: for people.
        metric: of the score, higher is better: a name of `toolkit.metrics.METRICS`.
        labels: in the order of the predicted probabilities.
        licence: of the data, as its makers state it.
        citation: of the data.
        source: address that describes the data.
        sizes: examples by split, or as "all" where they are in folds, as the first of the places gives them.
        published: scores by "system (paper)", each with what it was trained on where that differs.
        places: tried in order, each with the function that reads what was found there; where none is found, the first
            one that can be downloaded is, and where none can, the last one says what to do.
        kind: what an example is: a sentence, a pair of sentences, or a sentence with a label a token.
        folds: how many where there are no official splits; 0 where there are.
        repeated: how many sentences of dev and test stand in train too, where the published splits have such; in
            folds, as "all", how many sentences stand in another fold too.
    """

    name: str
    version: int
    title: str
    metric: str
    labels: tuple[str, ...]
    licence: str
    citation: str
    source: str
    sizes: Mapping[str, int]
    places: tuple[tuple[Place, Callable[[Path], Splits]], ...]
    published: Mapping[str, float] = field(default_factory=dict)
    kind: Kind = "sentence"
    folds: int = 0
    repeated: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse labels that would be read as several tags."""
        bad = next((label for label in self.labels if TAG_SEPARATOR in label), None)
        if bad is not None:
            raise DataError(f"task {self.name!r}: the label {bad!r} holds a tab, which separates tags: replace it")

    @property
    def part_names(self) -> tuple[str, ...]:
        """The names of `Splits.parts`, before the data is there."""
        return tuple(f"fold-{number}" for number in range(1, self.folds + 1)) or ("train", "dev", "test")

    def find(self, data: Path | None, cache: Path) -> Path | None:
        """Return where the data lies, None where it is nowhere yet."""
        return next((path for place, _ in self.places if (path := place.find(data, cache))), None)

    def load(self, data: Path | None, cache: Path) -> Splits:
        """Read the examples, from the first place that has them; fetch them where none has.

        Args:
            data: folder of task data that the user has; it wins over everything else.
            cache: folder of downloads.

        Raises:
            DataError: the data cannot be had or read; the message names the file and the line, or what to do.
        """
        for place, read in self.places:
            path = place.find(data, cache)
            if path is not None:
                return self._checked(read(path))
        place, read = self._wanted()
        return self._checked(read(place.obtain(cache)))

    def _checked(self, splits: Splits) -> Splits:
        """Check before anything is trained what predictions are told apart by."""
        for name, examples in splits.parts().items():
            counts = Counter(example.id for example in examples)
            twice = next((identity for identity, count in counts.items() if count > 1), None)
            if twice is not None:
                raise DataError(f"task {self.name!r}: {counts[twice]} examples of {name} have the id {twice!r}")
        return splits

    def obtain(self, cache: Path) -> Path:
        """Fetch the data into the cache and return its path; errors as in `Place.obtain`."""
        return self._wanted()[0].obtain(cache)

    def _wanted(self) -> tuple[Place, Callable[[Path], Splits]]:
        return next((pair for pair in self.places if pair[0].fetchable), self.places[-1])


def in_folds(examples: list[Example], description: str, count: int = 10) -> Splits:
    """Split examples into folds by a hash of the text.

    A sentence is in the same fold on every machine and at every version of the data, and equal sentences are in one
    fold, so that none is tested on what was trained on. Folds differ a little in size.
    """
    folds: tuple[list[Example], ...] = tuple([] for _ in range(count))
    for example in examples:
        folds[int(share(" ".join(example.tokens)) * count)].append(example)
    return Splits([], [], [], description, folds)


def share(text: str) -> float:
    """Return a number from 0 to 1, below 1, that depends on the text alone: it splits data the same way everywhere."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
