"""A linear head solved by scikit-learn: logistic regression with the L2 strength that is best on dev."""

from collections.abc import Iterator

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from tasks.adapter.classifier import Classifier
from tasks.adapter.dataset import Dataset
from toolkit.bilm.backend import tf
from toolkit.config import Evaluate
from toolkit.errors import DataError

SOLVER = "standardised"  # names how the weights are found; to be changed when others would be
GRID = tuple(2.0**power for power in range(-14, 5, 2))  # C on standardised features
ITERATIONS = 1000
TOLERANCE = 1e-3  # of the gradient: smaller ones change no tenth of a point on dev
CONSTANT = 1e-6  # standard deviation below which a feature tells nothing
NEVER = -1e4  # the score of a label that train does not have


def solved(
    classifier: Classifier, data: Dataset, train: np.ndarray, settings: Evaluate
) -> Iterator[tuple[float, float]]:
    """Put the weights of one logistic regression after the other into a linear head, the strongest penalty first.

    Features are standardised on train, so that one grid of C fits all widths and scales; the weights that the head gets
    are for the features as they are.

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
    mean, deviation = x.mean(0, np.float64), x.std(0, np.float64)
    scale = np.where(deviation > CONSTANT, 1 / np.maximum(deviation, CONSTANT), 0.0)
    x = (x - mean) * scale  # float64: without it L-BFGS needs many more steps
    model = LogisticRegression(tol=TOLERANCE, max_iter=ITERATIONS, class_weight=balanced, warm_start=True)
    for strength in GRID:
        with threadpool_limits(1):  # threads that wait for each other took 30 times the CPU
            model.set_params(C=strength).fit(x, y)
        weights, biases = model.coef_ * scale, model.intercept_ - model.coef_ @ (scale * mean)
        kernel, bias = (
            np.zeros((x.shape[1], len(data.labels)), np.float32),
            np.full(len(data.labels), NEVER, np.float32),
        )
        if len(model.classes_) == 2:
            kernel[:, model.classes_[1]], bias[model.classes_] = weights[0], (0.0, biases[0])
        else:
            kernel[:, model.classes_], bias[model.classes_] = weights.T, biases
        classifier.set_linear(kernel, bias)
        chosen = model.predict_proba(x)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
        yield strength, float(-np.log(np.maximum(chosen, 1e-12)).mean())


def features(classifier: Classifier, data: Dataset, rows: np.ndarray, batch_size: int) -> np.ndarray:
    """Return what a linear head's scores are linear in, float32 [n, F], a row an example, or a token in their order."""
    inputs = tf.function(classifier.inputs_of_scores, input_signature=classifier.signature, autograph=False)
    return np.concatenate(data.apply(inputs, rows, batch_size))
