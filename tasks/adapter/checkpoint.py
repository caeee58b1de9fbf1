"""The state of a training behind its last epoch, in one file: from there it goes on exactly."""

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tasks.adapter.classifier import Classifier
from tasks.adapter.epochs import Epoch
from tasks.adapter.step import Part
from toolkit.errors import FormatError
from toolkit.files import atomic_path

logger = logging.getLogger(__name__)

FOLDER = "checkpoints"
MARK = 64  # hexadecimal digits of the SHA-256 of all that is behind them, with which a file begins


@dataclass(frozen=True)
class State:
    """What a training leaves behind an epoch.

    Attributes:
        history: all epochs so far.
        best: the trained weights that were best on dev.
        now: all variables, optimizers and seeds of dropout included; empty where the training has ended.
        shuffle: the state of the generator that orders the examples.
    """

    history: list[Epoch]
    best: list[np.ndarray]
    now: list[np.ndarray]
    shuffle: dict


def path_of(run: Path, number: int) -> Path:
    """Return the file of one round of a run, rounds counted from 1."""
    return run / FOLDER / f"round-{number}.state"


def write_state(path: Path, state: State) -> None:
    """Write a state, whole or not at all: the SHA-256, then an .npz archive.

    Raises:
        DiskFullError: it does not fit on the disk; the state before it is as it was.
    """
    document = json.dumps([[asdict(epoch) for epoch in state.history], state.shuffle])
    arrays = {"document": np.frombuffer(document.encode("utf-8"), np.uint8)}
    for name in ("best", "now"):
        arrays |= {f"{name}_{number}": value for number, value in enumerate(getattr(state, name))}
    with atomic_path(path) as temporary, temporary.open("w+b") as file:
        file.write(b"0" * MARK)
        np.savez(file, **arrays)
        file.seek(MARK)
        mark = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        file.write(mark.encode("ascii"))


def read_state(path: Path) -> State:
    """Read a state.

    Raises:
        FormatError: the file is missing, cut short or damaged.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise FormatError(f"{path} cannot be read ({error.strerror})") from None
    with file:
        mark = file.read(MARK)
        if hashlib.file_digest(file, "sha256").hexdigest().encode("ascii") != mark:
            raise FormatError(f"{path} is damaged: it does not have the checksum that it begins with")
        file.seek(MARK)
        with np.load(file, allow_pickle=False) as arrays:
            history, shuffle = json.loads(arrays["document"].tobytes())
            best, now = (
                [arrays[f"{name}_{number}"] for number in range(sum(key.startswith(name) for key in arrays))]
                for name in ("best", "now")
            )
    for epoch in history:
        epoch["mixes"] = {place: tuple(mix) for place, mix in epoch["mixes"].items()}
    return State([Epoch(**epoch) for epoch in history], best, now, shuffle)


def read_states(run: Path) -> list[State]:
    """Return the states of a run's rounds up to the first that it lacks; a damaged one is told and counts as lacking.

    Its round starts over then, as do all behind it.
    """
    found: list[State] = []
    while path_of(run, len(found) + 1).is_file():
        try:
            found.append(read_state(path_of(run, len(found) + 1)))
        except FormatError as error:
            logger.warning("%s: this training starts over", error)
            break
    return found


class Training:
    """All that changes while a classifier is trained.

    Args:
        classifier: its variables, the seeds of its dropout included.
        parts: of it, with their optimizers.
        shuffle: orders the examples.
    """

    def __init__(self, classifier: Classifier, parts: Sequence[Part], shuffle: np.random.Generator) -> None:
        self.trained = [variable for _, of_part in parts for variable in of_part]
        self._all = [*classifier.variables, *(variable for optimizer, _ in parts for variable in optimizer.variables)]
        self._shuffle = shuffle

    def weights(self) -> list[np.ndarray]:
        """Return a copy of the trained weights."""
        return [variable.numpy().copy() for variable in self.trained]

    def state(self, history: list[Epoch], best: list[np.ndarray], ended: bool) -> State:
        """Return how things stand behind an epoch; of a training that has ended its best weights are enough."""
        now = [] if ended else [variable.numpy() for variable in self._all]
        return State(history, best, now, self._shuffle.bit_generator.state)

    def restore(self, state: State) -> None:
        """Put everything back to where it stood.

        Raises:
            FormatError: the state is that of another network.
        """
        for variables, values in ((self.trained, state.best), (self._all, state.now or self._all)):
            if [tuple(v.shape) for v in variables] != [tuple(v.shape) for v in values]:
                raise FormatError("the state is that of another network")
        for variable, value in zip(self._all, state.now, strict=False):  # of one that has ended there is none
            variable.assign(value)
        self._shuffle.bit_generator.state = state.shuffle
