"""What a training leaves of each pass: scores, mixes, which one was best, and whom to tell of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
    """What is called on the way: behind each optimiser step, behind each epoch, and where a training goes on."""

    on_step: Callable[[], None] = lambda: None
    on_epoch: Callable[[Epoch], None] = lambda epoch: None
    on_resume: Callable[[Epoch], None] = lambda epoch: None


def best_of(history: Sequence[Epoch]) -> Epoch:
    """Return the epoch with the highest score on dev, the earliest of equals."""
    return max(history, key=lambda epoch: epoch.dev_score)
