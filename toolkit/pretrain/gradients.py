"""A step that blew up: how large gradients and weights are in each part of the network, so that a user sees where."""

from dataclasses import dataclass

import numpy as np

from toolkit.bilm.backend import tf
from toolkit.pretrain.batches import Batch
from toolkit.pretrain.graph import TrainingGraph
from toolkit.pretrain.variables import named, part_of


class NotFinite(Exception):
    """A loss, gradient or perplexity that is no finite number any more; the step that met it changed no weight."""


@dataclass(frozen=True)
class Norms:
    """One part of the network at one step.

    Attributes:
        part: such as "LSTM layer 1 kernel".
        gradient: Euclidean norm of the part's gradient; not-a-number or infinite where it blew up.
        finite: share of the gradient's values that are finite numbers.
        weight: the largest absolute weight.
    """

    part: str
    gradient: float
    finite: float
    weight: float

    def __str__(self) -> str:
        broken = "" if self.finite == 1.0 else f" ({1 - self.finite:.1%} of its values are no finite numbers)"
        return f"{self.part}: gradient norm {self.gradient:.3g}{broken}, largest weight {self.weight:.3g}"


def first_not_finite(graph: TrainingGraph) -> str | None:
    """Return the first part of the network with a weight that is not finite, None where all are."""
    for path, variable in named(graph):
        if not bool(tf.reduce_all(tf.math.is_finite(variable))):
            return part_of(path)
    return None


def norms(graph: TrainingGraph, batch: Batch) -> list[Norms]:
    """Compute a batch's gradients again, changing nothing, and measure each part of the network."""
    _, gradients, _ = tf.function(graph.gradients, autograph=False)(*vars(batch).values())
    parts: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for (path, variable), gradient in zip(named(graph), gradients, strict=True):
        parts.setdefault(part_of(path), []).append((gradient.numpy(), variable.numpy()))
    return [_measured(part, members) for part, members in parts.items()]


def _measured(part: str, members: list[tuple[np.ndarray, np.ndarray]]) -> Norms:
    gradients = np.concatenate([gradient.ravel() for gradient, _ in members]).astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        norm = float(np.sqrt(np.square(gradients).sum()))
    weight = max(float(np.abs(weight).max()) for _, weight in members)
    return Norms(part, norm, float(np.isfinite(gradients).mean()), weight)
