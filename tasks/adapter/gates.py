"""What the mixes of a classifier weigh: one weight a layer, or of gates their distribution over tokens."""

from typing import Any

import numpy as np

from tasks.adapter.classifier import Classifier
from tasks.adapter.dataset import Dataset
from toolkit.bilm.backend import tf

QUANTILES = (5, 25, 50, 75, 95)  # percent


def mixes_now(
    classifier: Classifier, data: Dataset, rows: np.ndarray, batch_size: int
) -> dict[str, tuple[list[float], float]]:
    """Return the weights of the layers and gamma by place; of gated mixes means over the tokens of some examples."""
    found = classifier.weights_by_place()
    for place, values in gates_of_tokens(classifier, data, rows, batch_size).items():
        gamma = float(tf.convert_to_tensor(classifier.gates()[place].gamma))
        found[place] = values.mean(0).tolist(), gamma
    return found


def gates_of_tokens(classifier: Classifier, data: Dataset, rows: np.ndarray, batch_size: int) -> dict[str, np.ndarray]:
    """Return the weights that gated mixes give to the layers of each token, float32 [tokens, L+1] by place."""
    found: dict[str, list[np.ndarray]] = {place: [] for place in classifier.gates()}
    for start in range(0, len(rows) if found else 0, batch_size):
        inputs, lengths, *_ = data.batch(rows[start : start + batch_size])
        inside = np.arange(inputs.shape[1]) < lengths[:, None]
        for place, weights in classifier.gate_weights(inputs).items():
            found[place].append(weights.numpy()[inside])
    return {place: np.concatenate(parts) for place, parts in found.items()}


def distribution(values: np.ndarray) -> dict[str, Any]:
    """Return what is kept of weights [tokens, L+1]: tokens, and a number a layer of mean, sd and each quantile."""
    quantiles = np.percentile(values, QUANTILES, 0).tolist()
    return {
        "tokens": len(values),
        "mean": values.mean(0).tolist(),
        "sd": values.std(0).tolist(),
        "quantiles": {str(percent): value for percent, value in zip(QUANTILES, quantiles, strict=True)},
    }
