"""A linear head solved by scikit-learn: logistic regression with the L2 strength that is best on dev."""

from collections.abc import Iterator

import numpy as np
from sklearn.linear_model import LogisticRegression

from tasks.adapter.classifier import Classifier
from tasks.adapter.dataset import Dataset
from toolkit.bilm.backend import tf
from toolkit.config import Evaluate
from toolkit.errors import DataError

GRID = tuple(2.0**power for power in range(-2, 4))  # C, as SentEval takes it for scikit-learn
ITERATIONS = 1000
NEWTON_UP_TO = 2000  # weights: its steps are few, and each takes their number squared for every example
NEVER = -1e4  # the score of a label that train does not have


def solved(
    classifier: Classifier, data: Dataset, train: np.ndarray, settings: Evaluate
) -> Iterator[tuple[float, float]]:
    """Put the weights of one logistic regression after the other into a linear head.

    Args:
        classifier: its head is linear; x_k and the mix stay as they are.
        data: the examples.
        train: rows that are learned from.
        settings: batch size and class weights.

    Yields:
        C and the mean log loss on train, when the head has the weights.

    Raises:
        DataError: all training examples have one label.
    """
    x = features(classifier, data, train, settings.batch_size)
    y = data.flat_targets(train)
    if len(set(y.tolist())) == 1:
        raise DataError(f"all training examples have the label {data.labels[y[0]]!r}: there is nothing to tell apart")
    balanced = "balanced" if settings.class_weights == "balanced" else None
    n_weights = x.shape[1] * max(1, len(set(y.tolist())) - 1)
    solver = "newton-cholesky" if n_weights <= NEWTON_UP_TO else "lbfgs"  # to the same optimum
    if solver == "newton-cholesky":
        x = x.astype(np.float64)  # features that depend on each other would be singular in float32
    model = LogisticRegression(solver=solver, max_iter=ITERATIONS, class_weight=balanced, warm_start=True)
    for strength in GRID:
        model.set_params(C=strength).fit(x, y)
        kernel, bias = (
            np.zeros((x.shape[1], len(data.labels)), np.float32),
            np.full(len(data.labels), NEVER, np.float32),
        )
        if len(model.classes_) == 2:
            kernel[:, model.classes_[1]], bias[model.classes_] = model.coef_[0], (0.0, model.intercept_[0])
        else:
            kernel[:, model.classes_], bias[model.classes_] = model.coef_.T, model.intercept_
        classifier.head.scores.set_weights([kernel, bias])
        chosen = model.predict_proba(x)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
        yield strength, float(-np.log(np.maximum(chosen, 1e-12)).mean())


def features(classifier: Classifier, data: Dataset, rows: np.ndarray, batch_size: int) -> np.ndarray:
    """Return what a linear head's scores are linear in, float32 [n, F], a row an example, or a token in their order."""
    inputs = tf.function(classifier.inputs_of_scores, input_signature=classifier.signature, autograph=False)
    return np.concatenate(data.apply(inputs, rows, batch_size))
