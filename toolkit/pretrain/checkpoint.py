"""Checkpoints of a pretraining run: everything that the next step depends on, each with its checksum."""

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from toolkit.bilm.backend import tf
from toolkit.errors import FormatError
from toolkit.files import atomic_path, read_json, sha256, write_json
from toolkit.pretrain.graph import TrainingGraph

logger = logging.getLogger(__name__)

FOLDER = "checkpoints"
KEPT = 2  # the latest; the best is kept beside them
_NAME = re.compile(r"step-(\d{9})\.json")


@dataclass(frozen=True)
class Progress:
    """What is not a variable: the step tells the data cursor and every random number, since batches follow from it.

    Attributes:
        step: steps taken.
        seconds: of training so far.
        best: lowest validation perplexity so far, None before the first validation.
        best_step: when that was.
        validated: seconds of training at the last validation.
    """

    step: int
    seconds: float
    best: float | None
    best_step: int | None
    validated: float


def variables(graph: TrainingGraph) -> Iterator[tuple[str, tf.Variable]]:
    """Yield (name, variable) of all that training changes: weights, optimizer slots, LSTM states."""
    groups = {
        "weights": graph.dense,
        "softmax": graph.softmax,
        "slots": graph.slots,
        "softmax_slots": graph.sparse_slots,
        "states": graph.states,
    }
    for group, members in groups.items():
        yield from ((f"{group}/{index:03d}", variable) for index, variable in enumerate(members))


def save(run: Path, graph: TrainingGraph, progress: Progress) -> None:
    """Write a checkpoint into a run folder, then remove those that are no longer needed.

    The description is written last and holds the data's SHA-256: a checkpoint without one does not count.
    """
    path = run / FOLDER / f"step-{progress.step:09d}"
    data = path.with_suffix(".h5")
    with atomic_path(data) as temporary, h5py.File(temporary, "w") as file:
        for name, variable in variables(graph):
            value = variable.numpy()
            file[name] = value.view(np.uint16) if variable.dtype == tf.bfloat16 else value
    write_json(path.with_suffix(".json"), {**vars(progress), "sha256": sha256(data)})
    steps = [step for step, _ in _found(run)]
    wanted = {*steps[:KEPT], progress.best_step}
    for step in steps:
        if step not in wanted:
            for suffix in (".json", ".h5"):  # the description first: what has none does not count
                (run / FOLDER / f"step-{step:09d}{suffix}").unlink(missing_ok=True)


def restore(run: Path, graph: TrainingGraph) -> Progress:
    """Fill a graph's variables from the latest sound checkpoint of a run, saying so where the latest is not sound.

    Raises:
        FormatError: the run has no sound checkpoint, or its shapes are not the graph's.
    """
    reasons = []
    for _, path in _found(run):
        try:
            description = read_json(path)
            data = path.with_suffix(".h5")
            if not data.is_file() or sha256(data) != description.pop("sha256", None):
                raise FormatError(f"{data} does not have the checksum that {path.name} states")
            progress = Progress(**description)
        except (FormatError, TypeError) as error:
            reasons.append(str(error))
            logger.warning("checkpoint passed over, taking the one before it: %s", error)
            continue
        _fill(data, graph)
        return progress
    why = "; ".join(reasons) or f"{run / FOLDER} holds none yet"
    raise FormatError(f"{run.name} cannot be resumed, there is no sound checkpoint: {why}")


def _found(run: Path) -> list[tuple[int, Path]]:
    """Steps and descriptions of a run's checkpoints, the latest first."""
    matches = ((_NAME.fullmatch(path.name), path) for path in (run / FOLDER).glob("step-*.json"))
    return sorted(((int(match[1]), path) for match, path in matches if match), reverse=True)


def _fill(data: Path, graph: TrainingGraph) -> None:
    with h5py.File(data, "r") as file:
        values: Mapping[str, Any] = {name: file[name][()] if name in file else None for name, _ in variables(graph)}
    for name, variable in variables(graph):
        value = values[name]
        if value is None or value.shape != variable.shape:
            shape = None if value is None else value.shape
            raise FormatError(f"{data}: {name} has the shape {shape}, this run's settings ask for {variable.shape}")
        if variable.dtype == tf.bfloat16:
            value = value.view(tf.bfloat16.as_numpy_dtype)
        variable.assign(value)
