"""What a head is, pooling that never sees padding, and finding heads by name."""

import functools
import importlib
import pkgutil

import numpy as np

from tasks.adapter import heads
from toolkit.bilm.backend import tf
from toolkit.config import Evaluate
from toolkit.errors import UsageError, did_you_mean


class Head(tf.keras.layers.Layer):
    """From the vectors of a sentence to one score a label.

    A file in `heads/` that sets `HEAD` to a subclass adds a head, called as the file is.

    Args:
        n_labels: how many scores it gives.
        settings: the sizes and the dropout.
        rng: for the seeds of initial weights and dropout, so that one seed repeats the whole head.

    Call arguments:
        vectors: float32 [B, T, F].
        mask: bool [B, T], false at padding, which must not change a score.
        training: whether dropout is on.

    Returns (of a call):
        float32 [B, n_labels], before the softmax.
    """

    def __init__(self, n_labels: int, settings: Evaluate, rng: np.random.Generator) -> None:
        super().__init__()
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
