"""The vocabulary file: the words that the softmax predicts, one a line."""

import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from toolkit.errors import FormatError, UsageError
from toolkit.files import write_text
from toolkit.localhdf5 import FREE_BYTES, MOST_PACKED
from toolkit.text.corpus import SAMPLED
from toolkit.text.encoding import advice

BOS, EOS, UNK = "<S>", "</S>", "<UNK>"
SPECIALS = (BOS, EOS, UNK)
IGNORED = "!!!MAXTERMID"  # a line of some published files that takes no id
RESERVED = (*SPECIALS, IGNORED)  # what a word of a corpus cannot be


def read_bytes(path: Path) -> bytes:
    """Return the content of a file of words.

    Raises:
        FormatError: it is missing.
    """
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise FormatError(f"{path} is missing") from None


def numbered_words(data: bytes, where: str) -> Iterator[tuple[int, str]]:
    """Yield line number, from 1, and word of a file in the published format: UTF-8, one token a line, line feeds.

    Only the line feed ends a line: published files hold tokens that are a no-break space or another Unicode blank. A
    line `!!!MAXTERMID` is skipped, as bilm-tf does.

    Args:
        data: the content, packed where `where` ends in .gz.
        where: how messages call the file.

    Raises:
        FormatError: it is damaged, not UTF-8, or a line is blank.
    """
    try:
        text = (_unpacked(data, where) if where.endswith(".gz") else data).decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        byte = f"{where}, line {line}: byte 0x{error.object[error.start]:02x} is not UTF-8"
        start = max(0, error.start - SAMPLED // 2)
        guesses = advice(error.object[start : start + SAMPLED], error.start - start)
        raise FormatError(f"{byte}; {guesses}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise FormatError(f"{where} is damaged ({error})") from None
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        word = line.removesuffix("\r")
        if not word.strip(" \t"):
            raise FormatError(f"{where}, line {number} is blank: a vocabulary has one word a line")
        if word != IGNORED:
            yield number, word


def _unpacked(data: bytes, where: str) -> bytes:
    most = max(FREE_BYTES, MOST_PACKED * len(data))
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        text = file.read(most + 1)
    if len(text) > most:
        raise FormatError(f"{where} unpacks from {len(data):,} to more than {most:,} bytes: this is no vocabulary")
    return text


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
        """Read the published format: see `parse`.

        Args:
            path: the file, plain or .gz.

        Raises:
            FormatError: the file is missing, or as `parse`.
        """
        return cls.parse(read_bytes(path), str(path))

    @classmethod
    def parse(cls, data: bytes, where: str) -> "Vocabulary":
        """Take the content of a file in the published format: see `numbered_words`.

        Raises:
            FormatError: as `numbered_words`; a word stands twice; or `<S>`, `</S>` or `<UNK>` is missing, without which
                a softmax has no row for them.
        """
        first_line: dict[str, int] = {}
        for number, word in numbered_words(data, where):
            if word in first_line:
                raise FormatError(f"{where}, line {number}: {word!r} stands on line {first_line[word]} already")
            first_line[word] = number
        if missing := [word for word in SPECIALS if word not in first_line]:
            raise FormatError(f"{where} lacks {', '.join(missing)}: the softmax needs <S>, </S> and <UNK>")
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

    def to_text(self) -> str:
        """Return the published format: a word a line."""
        return "".join(f"{word}\n" for word in self.words)

    def save(self, path: Path) -> None:
        """Write the published format atomically."""
        write_text(path, self.to_text())

    def __len__(self) -> int:
        return len(self.words)

    def id(self, word: str) -> int:
        """Return the word's id, or that of `<UNK>` for a word that is not in the vocabulary."""
        return self.ids.get(word, self.ids[UNK])
