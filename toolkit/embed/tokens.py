"""The token layer's vectors, computed once a distinct word."""

from collections.abc import Sequence

import numpy as np

from toolkit.bilm.backend import tf
from toolkit.bilm.model import BiLM
from toolkit.errors import UsageError
from toolkit.text.chars import char_rows
from toolkit.text.vocab import Vocabulary

CACHE_BYTES = 64 << 20
CHUNK = 512  # words that the character CNN reads at a time: its pooled windows are the largest tensors of an encoding


class TokenTable:
    """Context-independent vectors of words (x_k of the ELMo paper), kept in a table of bounded size.

    Args:
        bilm: the weights.
        vocabulary: the rows of a model that reads words instead of characters, where a word that it lacks is `<UNK>`;
            unused otherwise.
        cache_bytes: size of the table; when it is full it starts afresh.

    Raises:
        UsageError: a model that reads words came without its vocabulary.
    """

    def __init__(self, bilm: BiLM, vocabulary: Vocabulary | None = None, cache_bytes: int = CACHE_BYTES) -> None:
        if bilm.char_cnn is None and vocabulary is None:
            raise UsageError("this model reads words, not characters: copy its vocab.txt beside the weights")
        self._bilm, self._vocabulary = bilm, vocabulary
        self.capacity = max(1, cache_bytes // (4 * bilm.spec.projection_dim))
        self._rows: dict[str, int] = {}
        self._table = np.empty((0, bilm.spec.projection_dim), np.float32)

    def vectors(self, words: Sequence[str]) -> np.ndarray:
        """Return the vectors of words, float32 [n, P]; words may repeat."""
        distinct = dict.fromkeys(words)
        missing = [word for word in distinct if word not in self._rows]
        if len(self._rows) + len(missing) > self.capacity:
            self._rows.clear()
            missing = list(distinct)
        if len(missing) > self.capacity:
            rows = dict(zip(missing, range(len(missing)), strict=True))
            return self._compute(missing)[[rows[word] for word in words]]
        if missing:
            self._keep(missing)
        return self._table[[self._rows[word] for word in words]]

    def kept(self) -> tuple[list[str], np.ndarray]:
        """Return the words of the table and their vectors, float32 [n, P]."""
        return list(self._rows), self._table[: len(self._rows)]

    def restore(self, words: Sequence[str], vectors: np.ndarray) -> None:
        """Fill the table with what `kept` gave: vectors depend, by rounding, on the words computed along with them."""
        self._rows = dict(zip(words, range(len(words)), strict=True))
        self._table = np.array(vectors, np.float32)

    def _keep(self, words: list[str]) -> None:
        first, last = len(self._rows), len(self._rows) + len(words)
        if last > len(self._table):
            table = np.empty((min(self.capacity, max(2 * last, CHUNK)), self._table.shape[1]), np.float32)
            table[:first] = self._table[:first]
            self._table = table
        self._table[first:last] = self._compute(words)
        self._rows.update(zip(words, range(first, last), strict=True))

    def _compute(self, words: list[str]) -> np.ndarray:
        if self._bilm.char_cnn is None:
            ids = np.array([self._vocabulary.id(word) for word in words], np.int32)
            return self._bilm.token_vectors(tf.constant(ids)).numpy()
        # Words of like length together: the CNN reads no more columns than the longest word of a chunk needs.
        order = sorted(range(len(words)), key=lambda i: len(words[i].encode("utf-8", "ignore")))
        result = np.empty((len(words), self._bilm.spec.projection_dim), np.float32)
        for start in range(0, len(words), CHUNK):
            chunk = order[start : start + CHUNK]
            result[chunk] = self._bilm.token_vectors(tf.constant(self._characters([words[i] for i in chunk]))).numpy()
        return result

    def _characters(self, words: list[str]) -> np.ndarray:
        """Character ids without the columns that hold nothing but padding, save those that the widest filter needs."""
        spec = self._bilm.spec
        longest = max(len(word.encode("utf-8", "ignore")) for word in words) + 2
        columns = max(longest, 3) + spec.widest_filter  # a sentence mark takes three
        return char_rows(words, spec.max_characters)[:, :columns]
