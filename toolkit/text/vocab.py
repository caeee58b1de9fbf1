"""The vocabulary file: the words that the softmax predicts, one a line."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from toolkit.errors import FormatError, UsageError
from toolkit.files import write_text

BOS, EOS, UNK = "<S>", "</S>", "<UNK>"
SPECIALS = (BOS, EOS, UNK)
IGNORED = "!!!MAXTERMID"  # a line of some published files that takes no id
RESERVED = (*SPECIALS, IGNORED)  # what a word of a corpus cannot be


class Vocabulary:
    """The words that the softmax predicts; a word's id is its place.

    `from_counts` puts the three special tokens at 0, 1, 2 and the words behind them by falling frequency, as the
    log-uniform sampler assumes. A loaded file keeps its own order, since the rows of its softmax follow that order.

    Attributes:
        words: all words, by id.
        ids: the id of each word.
    """

    def __init__(self, words: Sequence[str]) -> None:
        """Take the words in the order of their ids.

        Raises:
            ValueError: a word stands twice or a special token is missing.
        """
        self.words = list(words)
        self.ids = {word: number for number, word in enumerate(self.words)}
        if len(self.ids) != len(self.words):
            raise ValueError("a vocabulary's words must differ")
        if missing := [word for word in SPECIALS if word not in self.ids]:
            raise ValueError(f"a vocabulary must hold {', '.join(missing)}")

    @classmethod
    def load(cls, path: Path) -> "Vocabulary":
        """Read the published format: UTF-8, one token a line, ended by a line feed.

        Only the line feed ends a line: published files hold tokens that are a no-break space or another Unicode blank.

        Args:
            path: the file.

        Raises:
            FormatError: the file is missing or not UTF-8; a line is blank; a word stands twice; or `<S>`, `</S>` or
                `<UNK>` is missing, without which a softmax has no row for them.
        """
        try:
            text = Path(path).read_bytes().decode("utf-8")
        except FileNotFoundError:
            raise FormatError(f"{path} is missing") from None
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            raise FormatError(f"{path}, line {line}: byte 0x{error.object[error.start]:02x} is not UTF-8") from None
        first_line: dict[str, int] = {}
        for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
            word = line.removesuffix("\r")
            if not word.strip(" \t"):
                raise FormatError(f"{path}, line {number} is blank: a vocabulary has one word a line")
            if word == IGNORED:
                continue
            if word in first_line:
                raise FormatError(f"{path}, line {number}: {word!r} stands on line {first_line[word]} already")
            first_line[word] = number
        if missing := [word for word in SPECIALS if word not in first_line]:
            raise FormatError(f"{path} lacks {', '.join(missing)}: the softmax needs <S>, </S> and <UNK>")
        return cls(list(first_line))

    @classmethod
    def from_counts(
        cls, words: Sequence[str], counts: Sequence[int] | np.ndarray, size: int, min_count: int
    ) -> "Vocabulary":
        """Choose the most frequent words of a corpus.

        Args:
            words: distinct words; a special token, or `!!!MAXTERMID`, which readers skip, is left out.
            counts: how often each occurs, in the order of `words`; equal counts keep that order.
            size: the most words the vocabulary may hold, the three special tokens included.
            min_count: rarer words are left out and count as `<UNK>`.

        Raises:
            UsageError: no word occurs `min_count` times.
            ValueError: `words` and `counts` differ in length.
        """
        if len(words) != len(counts):
            raise ValueError(f"{len(words)} words but {len(counts)} counts")
        numbers = np.asarray(counts, dtype=np.int64)
        order = np.argsort(-numbers, kind="stable")
        frequent = order[: np.count_nonzero(numbers >= min_count)]
        chosen = [words[i] for i in frequent[: size + 1] if words[i] not in RESERVED][: size - len(SPECIALS)]
        if not chosen:
            raise UsageError(f"no word of the corpus occurs vocabulary.min_count = {min_count} times: lower it")
        return cls([*SPECIALS, *chosen])

    def save(self, path: Path) -> None:
        """Write the published format atomically."""
        write_text(path, "".join(f"{word}\n" for word in self.words))

    def __len__(self) -> int:
        return len(self.words)

    def id(self, word: str) -> int:
        """Return the word's id, or that of `<UNK>` for a word that is not in the vocabulary."""
        return self.ids.get(word, self.ids[UNK])
