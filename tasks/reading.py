"""Reading labelled text, with the file and the line in every complaint."""

import functools
import io
import lzma
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from tasks.task import Example, Splits, share
from toolkit.errors import DataError
from toolkit.text.corpus import lines
from toolkit.text.tokenize import Tokenizer

Rows = Iterable[tuple[int, str, str]]

_TOKENISED = Tokenizer("en", lowercase=False, input_kind="tokenised")


def tokens_of(text: str) -> tuple[str, ...]:
    """Split a tokenised sentence at white space; control characters count as blanks."""
    return tuple(token for sentence in _TOKENISED.sentences(text) for token in sentence)


def raw_tokens(text: str, language: str = "en") -> tuple[str, ...]:
    """Split raw text into tokens as corpora are split (`toolkit.text.tokenize`), all its sentences in a row."""
    return tuple(token for sentence in _raw(language).sentences(text) for token in sentence)


@functools.cache
def _raw(language: str) -> Tokenizer:
    return Tokenizer(language, lowercase=False, input_kind="raw")


def examples(
    rows: Rows, labels: Mapping[str, str], file: str, prefix: str, language: str | None = None
) -> list[Example]:
    """Make examples of labelled sentences; their ids are `prefix-line`.

    Args:
        rows: line number from 1, label as written, sentence.
        labels: label as written to the task's label.
        file: for messages.
        prefix: of the ids, such as the split's name.
        language: of raw text; None for tokenised text.

    Raises:
        DataError: there is no row, a label is not known, or a sentence is empty.
    """
    found = []
    for number, label, text in rows:
        if label not in labels:
            raise DataError(f"{file}, line {number}: the label {label!r} is none of {', '.join(map(repr, labels))}")
        tokens = raw_tokens(text, language) if language else tokens_of(text)
        if not tokens:
            raise DataError(f"{file}, line {number}: there is no sentence behind the label {label!r}")
        found.append(Example(f"{prefix}-{number}", tokens, labels[label]))
    if not found:
        raise DataError(f"{file} is empty: it should hold a label and a sentence a line")
    return found


def label_first(path: Path, labels: Mapping[str, str], prefix: str, encoding: str = "utf-8") -> list[Example]:
    """Read a file of `<label> <tokens>` lines; errors as in `examples`, and for bytes that are not of the encoding."""
    return examples(label_first_rows(path, encoding), labels, str(path), prefix)


def label_first_rows(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str, str]]:
    """Yield line number, label and the rest of each line; `encoding` is "utf-8" or "latin-1"."""
    for number, line in enumerate(lines(path) if encoding == "utf-8" else _decoded(path, encoding), 1):
        label, _, text = line.partition(" ")
        yield number, label, text


def _decoded(path: Path, encoding: str) -> Iterator[str]:
    # No splitlines(): in Latin-1 it would take the byte 0x85, an ellipsis of Windows, for the end of a line.
    with path.open(encoding=encoding, newline="\n") as file:
        yield from (line.rstrip("\r\n") for line in file)


def token_blocks(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line's number and the lines of each block of a file in which blank lines part the sentences."""
    block: list[str] = []
    number = 0
    for number, line in enumerate(lines(path), 1):
        if line.strip():
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []
    if block:
        yield number + 1 - len(block), block


@contextmanager
def member(archive: Path, name: str) -> Iterator[TextIO]:
    """Open a UTF-8 file inside a zip without unpacking the rest; DataError where either cannot be read."""
    try:
        with zipfile.ZipFile(archive) as file:
            try:
                stream = file.open(name)
            except KeyError:
                raise DataError(f"{archive} lacks {name}: it is not the published archive") from None
            with stream, io.TextIOWrapper(stream, encoding="utf-8", newline="\n") as text:
                yield text
    except zipfile.BadZipFile as error:
        raise DataError(f"{archive} is not a readable zip ({error}): fetch it again") from None


def tar_members(archive: Path) -> Iterator[tuple[str, str]]:
    """Yield name and UTF-8 text of each file of a compressed tar, in its order; DataError where it cannot be read."""
    try:
        with tarfile.open(archive, "r|*") as file:
            for entry in file:
                stream = file.extractfile(entry) if entry.isfile() else None
                if stream is not None and Path(entry.name).suffix in (".txt", ".csv"):
                    yield entry.name, stream.read().decode("utf-8")
    except (tarfile.TarError, EOFError, lzma.LZMAError, UnicodeDecodeError) as error:
        raise DataError(f"{archive} is not a readable archive of UTF-8 text ({error}): fetch it again") from None


def carved(found: list[Example], part: float) -> tuple[list[Example], list[Example]]:
    """Split examples in two by a hash of each text, so that equal texts stay together: the rest, and about `part`."""
    shares = [share(" ".join(example.tokens)) for example in found]
    return (
        [example for example, where in zip(found, shares, strict=True) if where >= part],
        [example for example, where in zip(found, shares, strict=True) if where < part],
    )


def split_by_hash(found: list[Example], description: str, dev: float = 0.1, test: float = 0.1) -> Splits:
    """Make the three splits of examples that come without, by a hash of each text: equal texts are in one split."""
    rest, tested = carved(found, test)
    shares = [share(" ".join(example.tokens)) for example in rest]
    selected = [example for example, where in zip(rest, shares, strict=True) if where < test + dev]
    learned = [example for example, where in zip(rest, shares, strict=True) if where >= test + dev]
    return Splits(learned, selected, tested, description)
