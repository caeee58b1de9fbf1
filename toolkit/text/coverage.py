"""How much of a text a vocabulary of some size would hold."""

from collections.abc import Sequence

import numpy as np

from toolkit.text.vocab import RESERVED, SPECIALS

SIZES = (1_000, 5_000, 10_000, 30_000, 50_000, 100_000)


def candidates(words: Sequence[str]) -> np.ndarray:
    """Return the places, int64, of the words that a vocabulary may hold: all but those equal to a special token."""
    return np.array([place for place, word in enumerate(words) if word not in RESERVED], np.int64)


def coverage(counts: np.ndarray, total: int, sizes: Sequence[int]) -> list[float]:
    """Return the share of the tokens that are in a vocabulary, for several sizes of it.

    Args:
        counts: int64 `[n]`, tokens of each word, in the order in which the vocabulary takes them.
        total: all tokens of the text.
        sizes: entries of the vocabulary, the three special tokens included.
    """
    sums = np.concatenate([[0], np.cumsum(counts)])
    taken = np.clip(np.array(sizes, np.int64) - len(SPECIALS), 0, len(counts))
    return [round(float(share), 6) for share in sums[taken] / max(total, 1)]


def useful_sizes(n_words: int, *more: int) -> list[int]:
    """Return the usual sizes and `more`, rising, up to the first that holds `n_words` words and the special tokens."""
    sizes = sorted({*SIZES, *more})
    smaller = [size for size in sizes if size < n_words + len(SPECIALS)]
    return sizes[: len(smaller) + 1]
