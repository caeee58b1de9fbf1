"""Vectors of words that stand for x_k in place of the model's own: from a GloVe, word2vec or fastText file, or trained.

A file is read once, as a stream; only the words of the task are kept.
"""

import functools
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tasks.adapter.features import Features
from tasks.adapter.vectorfile import vectors_of
from toolkit.config import Evaluate
from toolkit.errors import UsageError
from toolkit.files import sha256

logger = logging.getLogger(__name__)

OF_MODEL, TRAINED = "model", "trained:"
UNKNOWN = 0  # the row of zeros
RIDGE = 1.0  # on the map from token vectors to a file's vectors
SPREAD = 0.1  # standard deviation of trained vectors at their start


@dataclass(frozen=True)
class WordTable:
    """Vectors of the words of a task.

    Attributes:
        words: int32 [tokens], the row of each token.
        vectors: float32 [distinct words + 1, D]; row 0 is zeros.
        trained: whether they are trained with the classifier.
        coverage: for people.
    """

    words: np.ndarray
    vectors: np.ndarray
    trained: bool
    coverage: str

    def start(self, seed: int) -> np.ndarray:
        """Return the vectors that a training begins with: those of a file, or drawn from the seed."""
        if not self.trained:
            return self.vectors
        drawn = np.random.default_rng(seed).normal(0, SPREAD, self.vectors.shape).astype(np.float32)
        drawn[UNKNOWN] = 0
        return drawn

    def words_known(self, tokens: np.ndarray) -> np.ndarray:
        """Return the row of each token; where vectors are trained, words that train lacks are unknown.

        Args:
            tokens: int, the places of train's tokens.
        """
        return np.where(np.isin(self.words, self.words[tokens]), self.words, UNKNOWN) if self.trained else self.words


def width_of(settings: Evaluate) -> int:
    """Return the width of the vectors that the settings name, 0 for the model's own.

    Raises:
        UsageError: there is no such file, or no such width.
        FormatError: the file does not begin as such files do.
    """
    name = settings.word_vectors
    if name == OF_MODEL or not settings.x_k:
        return 0
    if name.startswith(TRAINED):
        width = name.removeprefix(TRAINED)
        if not (width.isascii() and width.isdigit() and int(width) > 0):
            raise UsageError(f"word vectors {name!r}: write their width behind it, as in trained:100")
        return int(width)
    return next(vectors_of(Path(name)))[1].size


def content_of(settings: Evaluate) -> str:
    """Return 16 digits of the SHA-256 of the file of word vectors that the settings name; "" where they name none.

    Raises:
        UsageError: there is no such file.
    """
    if not width_of(settings) or settings.word_vectors.startswith(TRAINED):
        return ""
    path = Path(settings.word_vectors).resolve()
    state = path.stat()
    return _content(path, state.st_mtime_ns, state.st_size)


@functools.lru_cache(maxsize=16)
def _content(path: Path, modified: int, size: int) -> str:
    """Return the digits of one version of a file, which a process reads once."""
    return sha256(path)[:16]


def label_of(settings: Evaluate) -> str:
    """Return the word vectors in the names of runs: "trained-100", a file's name with some digits; "" of the model."""
    if not width_of(settings):
        return ""
    if content := content_of(settings):
        zeros = "-zeros" if settings.unknown_words == "zeros" else ""
        return f"{Path(settings.word_vectors).name[:20]}-{content[:6]}{zeros}"
    return settings.word_vectors.replace(":", "-")


def title_of(settings: Evaluate) -> str:
    """Return x_k in words: "x_k trained", "x_k glove.txt", "x_k of the model"; its width follows."""
    if not width_of(settings):
        return "x_k of the model"
    name = settings.word_vectors
    return "x_k trained" if name.startswith(TRAINED) else f"x_k {Path(name).name}"


def word_table(
    settings: Evaluate, sentences: Sequence[Sequence[str]], features: Features | None, directions: int
) -> WordTable | None:
    """Return the vectors of all words of some sentences; None for the model's own.

    Words that a file lacks get zeros, or, with `unknown_words = "model"`, what a linear map makes of the model's own
    token vectors, fitted by ridge regression on the words that both have.

    Args:
        settings: `word_vectors`, `unknown_words`.
        sentences: all that `features` holds.
        features: layer 0 begins with the token vector; it is read where words are unknown. Without vectors of words it
            may be None.
        directions: how often it stands there side by side, 0 where it is none of the token alone.

    Raises:
        UsageError, FormatError: as in `width_of`, or none of the words is in the file.
    """
    width = width_of(settings)
    if not width:
        return None
    tokens = [token for sentence in sentences for token in sentence]
    # Not np.unique, whose texts are all as wide as the longest token: gigabytes with one of 2,000 characters.
    first_place: dict[str, int] = {}
    for place, token in enumerate(tokens):
        first_place.setdefault(token, place)
    distinct = sorted(first_place)
    first = np.array([first_place[word] for word in distinct], np.int64)
    numbers = {word: number for number, word in enumerate(distinct, 1)}
    words = np.fromiter((numbers[token] for token in tokens), np.int32, len(tokens))
    vectors = np.zeros((len(distinct) + 1, width), np.float32)
    if settings.word_vectors.startswith(TRAINED):
        return WordTable(words, vectors, True, f"{len(distinct):,} words, trained")
    path = Path(settings.word_vectors)
    known = _look_up(path, numbers, vectors)
    share = float(np.isin(words, known).mean())
    coverage = f"{len(known):,} of {len(distinct):,} words ({share:.1%} of the tokens) are in {path.name}"
    missing = np.setdiff1d(np.arange(1, len(vectors)), known)
    if len(missing) and settings.unknown_words == "model" and directions:
        token_vectors = np.asarray(features.layers[first, 0, : features.layers.shape[2] // directions], np.float64)
        vectors[missing] = _mapped(token_vectors, vectors, known, missing)
        coverage += ", the others mapped from the model's token vectors"
    elif len(missing):
        coverage += ", the others are zeros"
    logger.info("%s", coverage)
    return WordTable(words, vectors, False, coverage)


def _look_up(path: Path, numbers: dict[str, int], vectors: np.ndarray) -> np.ndarray:
    """Fill in the vectors of the words that a file has; return their rows. The first of two equal words counts."""
    known = set()
    for word, vector in vectors_of(path):
        row = numbers.get(word)
        if row is not None and row not in known:
            vectors[row] = vector
            known.add(row)
    if not known:
        raise UsageError(f"{path} holds none of the {len(numbers):,} words: is it of another language or case?")
    return np.array(sorted(known))


def _mapped(token_vectors: np.ndarray, vectors: np.ndarray, known: np.ndarray, missing: np.ndarray) -> np.ndarray:
    x, y = token_vectors[known - 1], vectors[known].astype(np.float64)
    x_mean, y_mean = x.mean(0), y.mean(0)
    x = x - x_mean
    weights = np.linalg.solve(x.T @ x + RIDGE * np.eye(x.shape[1]), x.T @ (y - y_mean))
    return (token_vectors[missing - 1] - x_mean) @ weights + y_mean
