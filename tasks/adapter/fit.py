"""The one training loop of all adapters: Adam on frozen layers, the best epoch on dev wins."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tasks.adapter.classifier import Classifier
from tasks.adapter.features import Features
from toolkit.bilm.backend import tf
from toolkit.config import Evaluate
from toolkit.errors import ToolkitError

LENGTHS_ALIKE = 8  # tokens by which the sentences of a batch differ, about


@dataclass(frozen=True)
class Epoch:
    """What one pass over the training split gave.

    Attributes:
        number: from 1.
        step: optimiser steps so far.
        loss: mean over the training examples, dropout on, penalty included.
        dev_score: accuracy on dev, dropout off.
        layer_weights, gamma: of the mix behind this epoch; None where no layer is in the vector.
    """

    number: int
    step: int
    loss: float
    dev_score: float
    layer_weights: list[float] | None
    gamma: float | None


def fit(
    classifier: Classifier,
    features: Features,
    gold: np.ndarray,
    train: np.ndarray,
    dev: np.ndarray,
    settings: Evaluate,
    seed: int,
    on_step: Callable[[], None],
    on_epoch: Callable[[Epoch], None],
) -> list[Epoch]:
    """Train a classifier; it ends with the weights of the epoch that was best on dev, the earliest of equals.

    Equal seeds give equal weights on the same machine.

    Args:
        classifier: as initialised.
        features: the layers of all examples.
        gold: int [examples], the index of each one's label.
        train, dev: int, the rows of the two splits.
        settings: epochs, patience, batch size, learning rate, clipping, the mix's lambda.
        seed: of the order of the examples.
        on_step: called behind each optimiser step.
        on_epoch: called behind each epoch.

    Returns:
        the epochs; training ended when `patience` of them brought nothing, or at `epochs`.

    Raises:
        ToolkitError: the loss is no finite number any more.
    """
    rng = np.random.default_rng(seed)
    step = _train_step(classifier, settings)
    history: list[Epoch] = []
    steps, best, kept = 0, None, []
    for number in range(1, settings.epochs + 1):
        total = 0.0
        for rows in batches(train, features.lengths, settings.batch_size, rng):
            total += float(step(*features.batch(rows), gold[rows])) * len(rows)
            steps += 1
            on_step()
        loss = total / len(train)
        if not np.isfinite(loss):
            raise ToolkitError(f"the loss is {loss} behind epoch {number}: lower evaluate.learning_rate")
        correct = predict(classifier, features, dev, settings.batch_size).argmax(1) == gold[dev]
        weights, gamma = classifier.layer_weights() or (None, None)
        epoch = Epoch(number, steps, loss, float(correct.mean()), weights, gamma)
        if best is None or epoch.dev_score > best.dev_score:
            best, kept = epoch, [variable.numpy().copy() for variable in classifier.trainable_variables]
        history.append(epoch)
        on_epoch(epoch)
        if number - best.number >= settings.patience:
            break
    for variable, value in zip(classifier.trainable_variables, kept, strict=True):
        variable.assign(value)
    return history


def steps_of_epoch(n_train: int, settings: Evaluate) -> int:
    """Return how many optimiser steps `fit` takes for one pass over n_train examples."""
    return math.ceil(n_train / settings.batch_size)


def best_epoch(history: list[Epoch]) -> Epoch:
    """Return the epoch whose weights `fit` kept."""
    return max(history, key=lambda epoch: epoch.dev_score)


def predict(classifier: Classifier, features: Features, rows: np.ndarray, batch_size: int) -> np.ndarray:
    """Return the probabilities of the labels, float32 [rows, labels], in the order of the rows."""
    order = np.argsort(features.lengths[rows], kind="stable")
    parts = [rows[order[start : start + batch_size]] for start in range(0, len(rows), batch_size)]
    found = np.concatenate([classifier.probabilities(*features.batch(part)).numpy() for part in parts])
    result = np.empty_like(found)
    result[order] = found
    return result


def batches(rows: np.ndarray, lengths: np.ndarray, batch_size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield every row once, shuffled, in batches of sentences of like length, so that little is padding."""
    order = rows[np.lexsort((rng.random(len(rows)), lengths[rows] // LENGTHS_ALIKE))]
    starts = rng.permutation(np.arange(0, len(order), batch_size))
    for start in starts:
        yield order[start : start + batch_size]


def _train_step(classifier: Classifier, settings: Evaluate) -> Callable[..., tf.Tensor]:
    optimizer = tf.keras.optimizers.Adam(settings.learning_rate, global_clipnorm=settings.clip_norm)
    optimizer.build(classifier.trainable_variables)

    @tf.function(input_signature=[*classifier.signature, tf.TensorSpec([None], tf.int32)])
    def step(layers: tf.Tensor, lengths: tf.Tensor, gold: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            scores = classifier(layers, lengths, training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(gold, scores))
            loss += sum(classifier.losses)  # the mix's penalty
        variables = classifier.trainable_variables
        optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    return step
