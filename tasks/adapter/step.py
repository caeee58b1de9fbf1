"""One optimiser step of a classifier: its loss, the weights of the labels in it, and a rate for each part."""

from collections.abc import Callable, Sequence

import numpy as np

from tasks.adapter.classifier import Classifier
from tasks.adapter.dataset import UNSCORED, Dataset
from toolkit.bilm.backend import tf
from toolkit.config import Evaluate

Part = tuple[tf.keras.optimizers.Optimizer, list[tf.Variable]]


def label_weights(data: Dataset, train: np.ndarray, settings: Evaluate) -> np.ndarray:
    """Return the weight of each label in the loss, float32: 1, or balanced n / (labels in train * its count)."""
    counts = np.bincount(data.flat_targets(train), minlength=len(data.labels))
    if settings.class_weights == "equal":
        return np.ones(len(counts), np.float32)
    return (counts.sum() / (np.count_nonzero(counts) * np.maximum(counts, 1))).astype(np.float32)


def parts_of(classifier: Classifier, settings: Evaluate) -> list[Part]:
    """Return the parts that are trained, each with its optimizer: mix and head, and a biLM that is fine-tuned."""
    below = [] if classifier.bilm is None else classifier.bilm.trainable_variables
    own = {id(variable) for variable in below}
    above = [variable for variable in classifier.trainable_variables if id(variable) not in own]
    parts = [(settings.learning_rate, above), (settings.finetune_rate, below)]
    return [(_adam(rate, variables), variables) for rate, variables in parts if variables]


def _adam(rate: float, variables: list[tf.Variable]) -> tf.keras.optimizers.Optimizer:
    optimizer = tf.keras.optimizers.Adam(rate)
    optimizer.build(variables)
    return optimizer


def train_step(
    classifier: Classifier, parts: Sequence[Part], settings: Evaluate, weights: np.ndarray
) -> Callable[..., tf.Tensor]:
    """Return the function of one step, from a batch and its targets to the loss before the step.

    Args:
        classifier: what is trained.
        parts: of it, see `parts_of`; the norm of the gradient is clipped over all of them together.
        settings: the norm.
        weights: float32 [labels], see `label_weights`.
    """
    of_labels = tf.constant(weights)
    shape = [None, None] if classifier.kind == "tagging" else [None]
    variables = [variable for _, of_part in parts for variable in of_part]

    @tf.function(input_signature=[*classifier.signature, tf.TensorSpec(shape, tf.int32)], autograph=False)
    def step(*arguments: tf.Tensor) -> tf.Tensor:
        *batch, gold = arguments
        with tf.GradientTape() as tape:
            scores = classifier(*batch, training=True)
            known = tf.maximum(gold, 0)
            share = tf.where(gold == UNSCORED, 0.0, tf.gather(of_labels, known))
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(known, scores)
            loss = tf.reduce_sum(share * losses) / tf.reduce_sum(share)
            loss += sum(classifier.losses)  # the mix's penalty
        # A biLM's upper layers have no gradient where the mix takes lower ones alone.
        found = tape.gradient(loss, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        clipped, _ = tf.clip_by_global_norm(found, settings.clip_norm)
        for optimizer, of_part in parts:
            optimizer.apply(clipped[: len(of_part)], of_part)
            clipped = clipped[len(of_part) :]
        return loss

    return step
