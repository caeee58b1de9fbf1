"""Checkpoints of a pretraining run: everything that the next step depends on, each with its checksum."""

import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.bilm.backend import tf
from toolkit.errors import FormatError
from toolkit.files import read_json, room_for, sha256, sweep, write_json
from toolkit.hdf5 import open_local, writing_hdf5
from toolkit.pretrain.distribute import Joined
from toolkit.pretrain.graph import TrainingGraph
from toolkit.pretrain.perplexity import Perplexity
from toolkit.pretrain.variables import named

logger = logging.getLogger(__name__)

FOLDER = "checkpoints"
KEPT = 2  # the latest; the best is kept beside them
OVERHEAD = 4096  # bytes that a variable takes in the file beside its values, at most
_NAME = re.compile(r"step-(\d{9})\.json")


@dataclass(frozen=True)
class Progress:
    """What is not a variable: the step tells the data cursor and every random number, since batches follow from it.

    Attributes:
        step: steps taken.
        seconds: of training so far.
        best: the lowest validation perplexity so far, None before the first validation.
        best_step: when that was.
        validated: seconds of training at the last validation.
        since_best: validations since the best one.
        schedule: the plan of the learning rate, see `schedule.Plan`; None in checkpoints of version 0.1.
    """

    step: int
    seconds: float
    best: Perplexity | None
    best_step: int | None
    validated: float
    since_best: int = 0
    schedule: dict[str, Any] | None = None


def variables(graph: TrainingGraph) -> Iterator[tuple[str, tf.Variable | Joined]]:
    """Yield (name, variable) of all that training changes: weights, optimizer slots, averages, LSTM states."""
    slots, averages = graph.optimizer.slots, graph.averages.values
    for index, (path, variable) in enumerate(named(graph)):
        yield f"weights/{path}", variable
        yield from ((f"{name}/{path}", members[index]) for name, members in slots.items())
        if averages:
            yield f"averages/{path}", averages[index]
    yield from _states(graph)


def _states(graph: TrainingGraph) -> Iterator[tuple[str, tf.Variable | Joined]]:
    """Those of all replicas, one behind the other as in the joined batch: how many share it makes no difference."""
    yield from zip(("states/cells", "states/outputs"), graph.joined_states, strict=True)


def save(run: Path, graph: TrainingGraph, progress: Progress) -> None:
    """Write a checkpoint into a run folder, then remove those that are no longer needed.

    The description is written last and holds the data's SHA-256: a checkpoint without one does not count. Kept are the
    latest two, and the best that each of them knows of. All workers call this, the chief writes.

    Raises:
        DiskFullError: it does not fit on the disk; the checkpoints before it are as they were.
    """
    states = {name: variable.numpy() for name, variable in _states(graph)}
    if not graph.replicas.chief:
        return
    path = run / FOLDER / f"step-{progress.step:09d}.json"
    data = path.with_suffix(".h5")
    members = list(variables(graph))
    size = sum(variable.shape.num_elements() * variable.dtype.size + OVERHEAD for _, variable in members)
    # The state at a step is always the same: where it lies there already, the file is never without its description.
    mark = _sound_mark(path)
    with room_for(data, 0 if mark else size):
        if not mark:
            with writing_hdf5(data) as file:
                for name, variable in members:
                    value = states[name] if name in states else variable.numpy()
                    file[name] = value.view(np.uint16) if variable.dtype == tf.bfloat16 else value
            mark = sha256(data)
        best = progress.best.document() if progress.best else None
        write_json(path, {**vars(progress), "best": best, "sha256": mark})
    found = [(step, other) for step, other in _found(run) if step <= progress.step]  # later ones were passed over
    kept = found[:KEPT]
    wanted = {step for step, _ in kept} | {_best_step(other) for _, other in kept}
    for step, other in _found(run):
        if step not in wanted:
            for unwanted in (other, other.with_suffix(".h5")):  # the description first: what has none does not count
                unwanted.unlink(missing_ok=True)


def restore(run: Path, graph: TrainingGraph) -> Progress:
    """Fill a graph's variables from the latest sound checkpoint of a run, saying so where the latest is not sound.

    Raises:
        FormatError: the run has no sound checkpoint, or its shapes are not the graph's.
    """
    if graph.replicas.chief:
        sweep(run / FOLDER)
    path, progress = _latest_sound(run)
    _fill(path.with_suffix(".h5"), variables(graph))
    graph.steps.assign(progress.step)
    return progress


def exists(run: Path) -> bool:
    """Return whether a run has a checkpoint, sound or not."""
    return bool(_found(run))


def latest(run: Path) -> Progress:
    """Return what the latest sound checkpoint of a run says of itself.

    Raises:
        FormatError: there is none.
    """
    return _latest_sound(run)[1]


def restore_weights(run: Path, graph: TrainingGraph, step: int) -> None:
    """Put what validation saw at one checkpoint, averages or weights, into a graph; the rest of it stays as it is.

    Raises:
        FormatError: there is no sound checkpoint of that step.
    """
    path = run / FOLDER / f"step-{step:09d}.json"
    _described(path)
    kind = "averages" if graph.averages.values else "weights"
    _fill(path.with_suffix(".h5"), ((f"{kind}/{name}", variable) for name, variable in named(graph)))
    graph.averages.restart()


def _latest_sound(run: Path) -> tuple[Path, Progress]:
    reasons = []
    for _, path in _found(run):
        try:
            return path, _described(path)
        except FormatError as error:
            reasons.append(str(error))
            logger.warning("checkpoint passed over, taking the one before it: %s", error)
    why = "; ".join(reasons) or f"{run / FOLDER} holds none yet"
    raise FormatError(f"{run.name} cannot be resumed, there is no sound checkpoint: {why}")


def _described(path: Path) -> Progress:
    """Read a checkpoint's description and check its data against it."""
    description = read_json(path)
    data = path.with_suffix(".h5")
    try:
        if not data.is_file() or sha256(data) != description.pop("sha256"):
            raise FormatError(f"{data} does not have the checksum that {path.name} states")
        best = description.pop("best")
        figures = Perplexity(best["forward"], best["backward"], best["n"]) if best else None
        return Progress(best=figures, **description)
    except (AttributeError, KeyError, TypeError) as error:
        raise FormatError(f"{path} is no description of a checkpoint ({error!r})") from None


def _sound_mark(path: Path) -> str | None:
    """The SHA-256 of a checkpoint's data, None where it is not there as its description says."""
    data = path.with_suffix(".h5")
    if not path.is_file() or not data.is_file():
        return None
    found = sha256(data)
    try:
        return found if read_json(path).get("sha256") == found else None
    except (FormatError, AttributeError):  # damaged: it is written anew
        return None


def _best_step(path: Path) -> int | None:
    try:
        return read_json(path).get("best_step")
    except (FormatError, AttributeError):  # damaged: it knows of none
        return None


def _found(run: Path) -> list[tuple[int, Path]]:
    """Steps and descriptions of a run's checkpoints, the latest first."""
    matches = ((_NAME.fullmatch(path.name), path) for path in (run / FOLDER).glob("step-*.json"))
    return sorted(((int(match[1]), path) for match, path in matches if match), reverse=True)


def _fill(data: Path, members: Iterable[tuple[str, tf.Variable | Joined]]) -> None:
    members = list(members)
    with open_local(data, str(data)) as file:
        values = {name: file[name][()] if name in file else None for name, _ in members}
        missing = {name.split("/")[0] for name in values} - set(file)
        if missing:
            raise FormatError(
                f"{data} holds {', '.join(sorted(file))} but not {', '.join(sorted(missing))}, which this run's "
                f"settings ask for: it was written with another optimizer or other averages"
            )
    for name, variable in members:
        shape = None if values[name] is None else values[name].shape
        if shape != variable.shape:
            raise FormatError(f"{data}: {name} has the shape {shape}, this run's settings ask for {variable.shape}")
    for name, variable in members:
        value = values[name]
        variable.assign(value.view(tf.bfloat16.as_numpy_dtype) if variable.dtype == tf.bfloat16 else value)
