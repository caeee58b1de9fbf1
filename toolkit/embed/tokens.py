"""The token layer's vectors, computed once a distinct word."""

from collections.abc import Sequence

import numpy as np

from toolkit.bilm.backend import tf
from toolkit.bilm.char_cnn_groups import group_of, group_widths
from toolkit.bilm.inference import Inference
from toolkit.errors import UsageError
from toolkit.text.chars import PADDING, char_rows, marked_length
from toolkit.text.vocab import Vocabulary

CACHE_BYTES = 64 << 20
# Words that the character CNN reads at a time: compiling another size costs more than it saves.
SIZES = (64, 512)


class TokenTable:
    """Context-independent vectors of words (x_k of the ELMo paper), kept in a table of bounded size.

    Args:
        inference: the biLM.
        vocabulary: the rows of a model that reads words instead of characters, where a word that it lacks is `<UNK>`;
            unused otherwise.
        cache_bytes: size of the table; when it is full it starts afresh.

    Raises:
        UsageError: a model that reads words came without its vocabulary.
    """

    def __init__(
        self, inference: Inference, vocabulary: Vocabulary | None = None, cache_bytes: int = CACHE_BYTES
    ) -> None:
        bilm = inference.bilm
        if bilm.char_cnn is None and vocabulary is None:
            raise UsageError("this model reads words, not characters: copy its vocab.txt beside the weights")
        self._inference, self._bilm, self._vocabulary = inference, bilm, vocabulary
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
            table = np.empty((min(self.capacity, max(2 * last, SIZES[-1])), self._table.shape[1]), np.float32)
            table[:first] = self._table[:first]
            self._table = table
        self._table[first:last] = self._compute(words)
        self._rows.update(zip(words, range(first, last), strict=True))

    def _compute(self, words: list[str]) -> np.ndarray:
        if self._bilm.char_cnn is None:
            ids = np.array([self._vocabulary.id(word) for word in words], np.int32)
            return self._bilm.token_vectors(tf.constant(ids)).numpy()
        lengths = np.array([marked_length(word, self._bilm.spec.max_characters) for word in words])
        if (
            len(words) < SIZES[0] and not self._inference.rounds
        ):  # no more columns than the longest word needs, and nothing compiled
            columns = lengths.max() + self._bilm.spec.widest_filter
            return self._bilm.token_vectors(self._characters(words, len(words), columns)).numpy()
        result = np.empty((len(words), self._bilm.spec.projection_dim), np.float32)
        group = group_of(lengths, self._bilm.spec)
        widths = group_widths(self._bilm.spec)
        if len(words) <= SIZES[0]:  # fewer sizes to compile; words of full length are computed in another order
            short = group < len(widths) - 1
            group[short] = group[short].max(initial=0)
        for number, columns in enumerate(widths):
            members = np.flatnonzero(group == number)
            for start in range(0, len(members), SIZES[-1]):
                chunk = members[start : start + SIZES[-1]]
                size = next(size for size in SIZES if size >= len(chunk))
                ids = self._characters([words[i] for i in chunk], size, columns)
                result[chunk] = self._inference.group_vectors(ids).numpy()[: len(chunk)]
        return result

    def _characters(self, words: list[str], rows: int, columns: int) -> tf.Tensor:
        """Character ids of words, filled up with rows of padding."""
        ids = np.full((rows, min(columns, self._bilm.spec.max_characters)), PADDING, np.int32)
        ids[: len(words)] = char_rows(words, self._bilm.spec.max_characters)[:, :columns]
        return tf.constant(ids)
