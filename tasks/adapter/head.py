"""What a head is, pooling that never sees padding, and finding heads by name."""

import functools
import importlib
import pkgutil
from typing import ClassVar

import numpy as np

from tasks.adapter import heads
from tasks.task import Kind
from toolkit.bilm.backend import tf
from toolkit.config import Evaluate
from toolkit.errors import UsageError, did_you_mean


class Head(tf.keras.layers.Layer):
    """From the vectors of sentences to one score a label.

    A file in `heads/` that sets `HEAD` to a subclass adds a head, called as the file is.

    Args:
        n_labels: how many scores it gives.
        settings: the sizes and the dropout.
        rng: for the seeds of initial weights and dropout, so that one seed repeats the whole head.
        kind: which of its kinds it is for.

    Call arguments:
        vectors: float32 [B, T, F]; of pairs first all first sentences, then all second ones.
        mask: bool [B, T], false at padding, which must not change a score.
        behind: float32 [B, T, G], to stand beside the head's own states of the tokens; None for nothing.
        positions: int32 [B], where the word in question stands; -1 where the whole sentence is in question.
        training: whether dropout is on.

    Returns (of a call):
        float32 before the softmax: [B, n_labels]; of pairs [B / 2, n_labels], of tokens [B, T, n_labels].

    Attributes:
        kinds: of tasks that the head is for.
        has_output: whether it has states of tokens, beside which `behind` can stand.
        is_linear: whether its scores are a linear function of `features`, `scores`; then scikit-learn can solve it.
    """

    kinds: ClassVar[tuple[Kind, ...]] = ("sentence",)
    has_output: ClassVar[bool] = True
    is_linear: ClassVar[bool] = False

    def __init__(self, n_labels: int, settings: Evaluate, rng: np.random.Generator, kind: Kind = "sentence") -> None:
        super().__init__()
        self.kind = kind
        self.dropout = tf.keras.layers.Dropout(settings.dropout, seed=seed_of(rng))
        self.scores = tf.keras.layers.Dense(n_labels, kernel_initializer=glorot(rng))


def seed_of(rng: np.random.Generator) -> int:
    """Draw a seed for a Keras initialiser or dropout."""
    return int(rng.integers(2**31))


def glorot(rng: np.random.Generator) -> tf.keras.initializers.Initializer:
    """Return a Glorot-uniform initialiser with a seed of its own."""
    return tf.keras.initializers.GlorotUniform(seed_of(rng))


def masked_mean(vectors: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Average [B, T, F] over the true tokens to [B, F]; a row without any gives zeros."""
    weights = tf.cast(mask, vectors.dtype)[..., None]
    return tf.reduce_sum(vectors * weights, 1) / tf.maximum(tf.reduce_sum(weights, 1), 1.0)


def masked_max(vectors: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Take the maximum of [B, T, F] over the true tokens to [B, F]; a row without any gives zeros."""
    highest = tf.reduce_max(tf.where(mask[..., None], vectors, vectors.dtype.min), 1)
    return tf.where(tf.reduce_any(mask, 1)[:, None], highest, 0.0)


def beside(states: tf.Tensor, behind: tf.Tensor | None) -> tf.Tensor:
    """Put what goes to the head's output beside its states of the tokens."""
    return states if behind is None else tf.concat([states, behind], -1)


def asked(mask: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
    """Return a mask [B, T] of the word in question, of all true tokens where there is none."""
    word = tf.one_hot(positions, tf.shape(mask)[1], True, False, dtype=tf.bool)
    return tf.where(positions[:, None] < 0, mask, word)


def compared(both: tf.Tensor) -> tf.Tensor:
    """Return what tells two vectors apart, |u - v| and u * v side by side: [2 B, F] to [B, 2 F]."""
    first, second = tf.split(both, 2)
    return tf.concat([tf.abs(first - second), first * second], -1)


@functools.cache
def all_heads() -> dict[str, type[Head]]:
    """Return the heads by name, sorted."""
    names = sorted(info.name for info in pkgutil.iter_modules(heads.__path__))
    return {name: importlib.import_module(f"{heads.__name__}.{name}").HEAD for name in names}


def find_head(name: str) -> type[Head]:
    """Return the head of a name.

    Raises:
        UsageError: there is none; the message names the nearest.
    """
    known = all_heads()
    if name not in known:
        raise UsageError(f"unknown head {name!r}: {did_you_mean(name, known)}")
    return known[name]
