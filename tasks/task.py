"""What a task is: labelled examples in three splits, and where they come from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol

from toolkit.files import fingerprint


@dataclass(frozen=True)
class Example:
    """A sentence with its label.

    Attributes:
        id: names the example within its task, the same at every load.
        tokens: at least one.
        label: one of the task's labels.
    """

    id: str
    tokens: tuple[str, ...]
    label: str


@dataclass(frozen=True)
class Splits:
    """The examples of a task; the ids of one split are distinct.

    Attributes:
        train, dev, test: what is learned from, selected on, reported on.
        description: where the examples lie and how the splits came about, in one sentence.
    """

    train: list[Example]
    dev: list[Example]
    test: list[Example]
    description: str

    def parts(self) -> dict[str, list[Example]]:
        """Return the splits by name, in the order train, dev, test."""
        return {"train": self.train, "dev": self.dev, "test": self.test}

    @cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that name ids, tokens and labels of all splits."""
        return fingerprint([[[e.id, e.tokens, e.label] for e in part] for part in self.parts().values()])


class Place(Protocol):
    """Where data can lie."""

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
        metric: of the score, from 0 to 1, higher is better.
        labels: in the order of the predicted probabilities.
        licence: of the data, as its makers state it.
        citation: of the data.
        source: address that describes the data.
        sizes: examples by split, as the first of the places gives them.
        published: scores by "system (paper)", each with what it was trained on where that differs.
        places: tried in order, each with the function that reads what was found there; the last one can be fetched
            where none is found.
    """

    name: str
    version: int
    title: str
    metric: Literal["accuracy"]
    labels: tuple[str, ...]
    licence: str
    citation: str
    source: str
    sizes: Mapping[str, int]
    places: tuple[tuple[Place, Callable[[Path], Splits]], ...]
    published: Mapping[str, float] = field(default_factory=dict)
    kind: Literal["sentence"] = "sentence"

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
                return read(path)
        place, read = self.places[-1]
        return read(place.obtain(cache))
