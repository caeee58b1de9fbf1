"""The one training loop of all adapters: Adam on frozen layers, the best epoch on dev wins."""

import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tasks.adapter import logistic
from tasks.adapter.classifier import Classifier
from tasks.adapter.dataset import UNSCORED, Dataset
from tasks.adapter.gates import mixes_now
from toolkit.bilm.backend import tf
from toolkit.config import Evaluate
from toolkit.errors import ToolkitError

logger = logging.getLogger(__name__)

LENGTHS_ALIKE = 4  # tokens by which the sentences of a batch differ, about

Mixes = dict[str, tuple[list[float], float]]


@dataclass(frozen=True)
class Epoch:
    """What one pass over the training split gave, or one logistic regression.

    Attributes:
        number: from 1.
        step: optimiser steps so far.
        loss: mean over the training examples: of a pass with dropout on, penalty included.
        dev_score: the task's metric on dev, dropout off.
        mixes: by place the weights of the layers and gamma behind this epoch; of gated mixes means over dev's tokens.
        strength: C of a logistic regression, else None.
    """

    number: int
    step: int
    loss: float
    dev_score: float
    mixes: Mixes
    strength: float | None = None


@dataclass(frozen=True)
class Fitted:
    """A training.

    Attributes:
        history: all epochs.
        path: those that led to the weights that were kept; the last one is the one that was best on dev.
    """

    history: list[Epoch]
    path: list[Epoch]

    @property
    def best(self) -> Epoch:
        """The epoch whose weights the classifier has."""
        return self.path[-1]


@dataclass(frozen=True)
class Watch:
    """What is called on the way: behind each optimiser step, and behind each epoch."""

    on_step: Callable[[], None] = lambda: None
    on_epoch: Callable[[Epoch], None] = lambda epoch: None


def fit(
    classifier: Classifier,
    data: Dataset,
    train: np.ndarray,
    dev: np.ndarray,
    settings: Evaluate,
    seed: int,
    watch: Watch,
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

    Returns:
        the epochs; training ended when `patience` of them brought nothing, or at `epochs`.

    Raises:
        ToolkitError: the loss is no finite number any more.
        DataError: a linear head has one label to learn.
    """
    history: list[Epoch] = []
    path: list[Epoch] = []
    if not classifier.head.is_linear or classifier.learns_below:
        history = _by_gradient(classifier, data, train, dev, settings, seed, watch)
        path = [epoch for epoch in history if epoch.number <= _best(history).number]
    if not classifier.head.is_linear:
        return Fitted(history, path)
    start, number, kept = path[-1].step if path else 0, len(history), []
    grid: list[Epoch] = []
    for strength, loss in logistic.solved(classifier, data, train, settings):
        number += 1
        mixes = path[-1].mixes if path else mixes_now(classifier, data, dev, settings.batch_size)
        grid.append(Epoch(number, start, loss, _dev_score(classifier, data, dev, settings), mixes, strength))
        if _best(grid) is grid[-1]:
            kept = classifier.head.scores.get_weights()
        watch.on_epoch(grid[-1])
    classifier.head.scores.set_weights(kept)
    return Fitted([*history, *grid], [*path, _best(grid)])


def _by_gradient(
    classifier: Classifier,
    data: Dataset,
    train: np.ndarray,
    dev: np.ndarray,
    settings: Evaluate,
    seed: int,
    watch: Watch,
) -> list[Epoch]:
    rng = np.random.default_rng(seed)
    step = _train_step(classifier, settings, label_weights(data, train, settings))
    history: list[Epoch] = []
    steps, kept = 0, []
    for number in range(1, settings.epochs + 1):
        total = 0.0
        for rows in batches(train, data.lengths, settings.batch_size, rng):
            total += float(step(*data.batch(rows), data.targets_of(rows))) * len(rows)
            steps += 1
            watch.on_step()
        loss = total / len(train)
        if not np.isfinite(loss):
            raise ToolkitError(f"the loss is {loss} behind epoch {number}: lower evaluate.learning_rate")
        mixes = mixes_now(classifier, data, dev, settings.batch_size)
        history.append(Epoch(number, steps, loss, _dev_score(classifier, data, dev, settings), mixes))
        if _best(history) is history[-1]:
            kept = [variable.numpy().copy() for variable in classifier.trainable_variables]
        watch.on_epoch(history[-1])
        if number - _best(history).number >= settings.patience:
            break
    for variable, value in zip(classifier.trainable_variables, kept, strict=True):
        variable.assign(value)
    return history


def steps_of_epoch(n_train: int, settings: Evaluate) -> int:
    """Return how many optimiser steps `fit` takes for one pass over n_train examples."""
    return math.ceil(n_train / settings.batch_size)


def _best(history: list[Epoch]) -> Epoch:
    return max(history, key=lambda epoch: epoch.dev_score)


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


def label_weights(data: Dataset, train: np.ndarray, settings: Evaluate) -> np.ndarray:
    """Return the weight of each label in the loss, float32: 1, or balanced n / (labels in train * its count)."""
    counts = np.bincount(data.flat_targets(train), minlength=len(data.labels))
    if settings.class_weights == "equal":
        return np.ones(len(counts), np.float32)
    return (counts.sum() / (np.count_nonzero(counts) * np.maximum(counts, 1))).astype(np.float32)


def _train_step(classifier: Classifier, settings: Evaluate, weights: np.ndarray) -> Callable[..., tf.Tensor]:
    optimizer = tf.keras.optimizers.Adam(settings.learning_rate, global_clipnorm=settings.clip_norm)
    optimizer.build(classifier.trainable_variables)
    of_labels = tf.constant(weights)
    shape = [None, None] if classifier.kind == "tagging" else [None]

    @tf.function(input_signature=[*classifier.signature, tf.TensorSpec(shape, tf.int32)])
    def step(*arguments: tf.Tensor) -> tf.Tensor:
        *batch, gold = arguments
        with tf.GradientTape() as tape:
            scores = classifier(*batch, training=True)
            known = tf.maximum(gold, 0)
            share = tf.where(gold == UNSCORED, 0.0, tf.gather(of_labels, known))
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(known, scores)
            loss = tf.reduce_sum(share * losses) / tf.reduce_sum(share)
            loss += sum(classifier.losses)  # the mix's penalty
        variables = classifier.trainable_variables
        optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    return step
