"""The one training loop of all adapters: Adam, the best epoch on dev wins, and what was killed goes on exactly."""

import logging
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tasks.adapter import logistic
from tasks.adapter.checkpoint import State, Training, write_state
from tasks.adapter.classifier import Classifier
from tasks.adapter.dataset import Dataset
from tasks.adapter.epochs import Epoch, Fitted, Watch, best_of
from tasks.adapter.gates import mixes_now
from tasks.adapter.step import label_weights, parts_of, train_step
from toolkit.config import Evaluate
from toolkit.errors import FormatError, ToolkitError

logger = logging.getLogger(__name__)

LENGTHS_ALIKE = 4  # tokens by which the sentences of a batch differ, about


def fit(
    classifier: Classifier,
    data: Dataset,
    train: np.ndarray,
    dev: np.ndarray,
    settings: Evaluate,
    seed: int,
    watch: Watch,
    path: Path | None = None,
    start: State | None = None,
) -> Fitted:
    """Train a classifier; it ends with the weights that were best on dev, the earliest of equals.

    A linear head is solved as a logistic regression. Where the vectors below it are learned, too, the gradient finds
    those first, and they are fixed then. Equal seeds give equal weights on the same machine.

    Args:
        classifier: as initialised.
        data: all examples.
        train, dev: int, the rows that are learned from and selected on.
        settings: epochs, patience, batch size, learning rate, clipping, class weights, the mix's lambda.
        seed: of the order of the examples.
        watch: is told of the progress.
        path: of the file that gets the state behind each epoch of a training by gradient; None for none.
        start: the state to go on from, of a training with the same arguments.

    Returns:
        the epochs, those before `start` included; training ended when `patience` of them brought nothing, or at
        `epochs`.

    Raises:
        ToolkitError: the loss is no finite number any more.
        DataError: a linear head has one label to learn.
    """
    history: list[Epoch] = []
    way: list[Epoch] = []
    if not classifier.head.is_linear or classifier.learns_below:
        history = _by_gradient(classifier, data, train, dev, settings, seed, watch, path, start)
        way = [epoch for epoch in history if epoch.number <= best_of(history).number]
    if not classifier.head.is_linear:
        return Fitted(history, way)
    steps, number, kept = way[-1].step if way else 0, len(history), []
    grid: list[Epoch] = []
    for strength, loss in logistic.solved(classifier, data, train, settings):
        number += 1
        mixes = way[-1].mixes if way else mixes_now(classifier, data, dev, settings.batch_size)
        grid.append(Epoch(number, steps, loss, _dev_score(classifier, data, dev, settings), mixes, strength))
        if best_of(grid) is grid[-1]:
            kept = classifier.linear()
        watch.on_epoch(grid[-1])
    classifier.set_linear(*kept)
    return Fitted([*history, *grid], [*way, best_of(grid)])


def _by_gradient(
    classifier: Classifier,
    data: Dataset,
    train: np.ndarray,
    dev: np.ndarray,
    settings: Evaluate,
    seed: int,
    watch: Watch,
    path: Path | None,
    start: State | None,
) -> list[Epoch]:
    rng = np.random.default_rng(seed)
    parts = parts_of(classifier, settings)
    step = train_step(classifier, parts, settings, label_weights(data, train, settings))
    training = Training(classifier, parts, rng)
    history, best = _resumed(training, start, watch)
    while not _ended(history, settings):
        number, steps, total = len(history) + 1, history[-1].step if history else 0, 0.0
        for rows in batches(train, data.lengths, settings.batch_size, rng):
            total += float(step(*data.batch(rows), data.targets_of(rows))) * len(rows)
            steps += 1
            watch.on_step()
        loss = total / len(train)
        if not np.isfinite(loss):
            rates = "evaluate.learning_rate" + (" or evaluate.finetune_rate" if settings.finetune_rate else "")
            raise ToolkitError(f"the loss is {loss} behind epoch {number}: lower {rates}")
        mixes = mixes_now(classifier, data, dev, settings.batch_size)
        history.append(Epoch(number, steps, loss, _dev_score(classifier, data, dev, settings), mixes))
        if best_of(history) is history[-1]:
            best = training.weights()
        watch.on_epoch(history[-1])
        if path is not None:
            write_state(path, training.state(history, best, _ended(history, settings)))
    for variable, value in zip(training.trained, best, strict=True):
        variable.assign(value)
    return history


def _resumed(training: Training, start: State | None, watch: Watch) -> tuple[list[Epoch], list[np.ndarray]]:
    if start is None:
        return [], []
    try:
        training.restore(start)
    except FormatError as error:
        logger.warning("%s: this training starts over", error)
        return [], []
    watch.on_resume(start.history[-1])
    return list(start.history), start.best


def _ended(history: Sequence[Epoch], settings: Evaluate) -> bool:
    if not history:
        return False
    number = history[-1].number
    return number >= settings.epochs or number - best_of(history).number >= settings.patience


def steps_of_epoch(n_train: int, settings: Evaluate) -> int:
    """Return how many optimiser steps `fit` takes for one pass over n_train examples."""
    return math.ceil(n_train / settings.batch_size)


def _dev_score(classifier: Classifier, data: Dataset, dev: np.ndarray, settings: Evaluate) -> float:
    return data.score(dev, data.answers(predict(classifier, data, dev, settings.batch_size)))


def predict(classifier: Classifier, data: Dataset, rows: np.ndarray, batch_size: int) -> list[np.ndarray]:
    """Return the probabilities of the labels, float32 [labels] an example, or [tokens, labels], in their order."""
    found = data.apply(classifier.probabilities, rows, batch_size)
    return found if data.kind == "tagging" else [probabilities[0] for probabilities in found]


def batches(rows: np.ndarray, lengths: np.ndarray, batch_size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield every row once, shuffled, in batches of sentences of like length, so that little is padding."""
    order = rows[np.lexsort((rng.random(len(rows)), lengths[rows] // LENGTHS_ALIKE))]
    starts = rng.permutation(np.arange(0, len(order), batch_size))
    for start in starts:
        yield order[start : start + batch_size]
