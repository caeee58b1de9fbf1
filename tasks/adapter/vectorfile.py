"""Files of word vectors: GloVe, word2vec (text and binary) and fastText's .vec, told apart by their content.

A file is read as a stream, and every vector in it is checked.
"""

import io
import lzma
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from toolkit.errors import FormatError, UsageError
from toolkit.text.corpus import BOM, UTF16, Chained, opened

FASTTEXT_MAGIC = struct.pack("<i", 793712314)
HEADER = re.compile(rb"(\d{1,12})[ \t]+(\d{1,6})[ \t]*\r?\n")  # number of words and width
HEAD = 1 << 16  # bytes by which text and binary are told apart
BINARY = re.compile(rb"[\x00-\x08\x0e-\x1f]")
LONGEST_WORD = 10_000  # bytes
LARGEST = 1e6  # no word vector has such numbers: beyond are damaged files
OTHER_FILES = {
    b"\x80": "a Python pickle",
    b"PK": "a zip: unpack it first",
    b"\x89HDF": "HDF5",
    b"\x93NUMPY": "a NumPy array",
    **dict.fromkeys(UTF16, "UTF-16 text; convert it: iconv -f utf-16 -t utf-8"),
}


def vectors_of(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Yield words and their vectors, float32 [D].

    Args:
        path: text of a word and its numbers per line, after a line with the number of words and the width (word2vec,
            fastText) or without (GloVe), or word2vec's binary format; `.gz`, `.bz2` and `.xz` are decompressed.

    Raises:
        UsageError: there is no such file.
        FormatError: it is of another kind or damaged, a number is not finite or beyond a million, or there are not as
            many words as the header says; with the line, or in a binary file the word.
    """
    if not path.is_file():
        raise UsageError(f"no word vectors at {path}: give a file, 'model' or 'trained:100'")
    try:
        with opened(path) as (_, stream):
            yield from _entries(path, stream)
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise FormatError(f"{path} is damaged or not what its suffix says: {error}") from None


def _entries(path: Path, stream: BinaryIO) -> Iterator[tuple[str, np.ndarray]]:
    head = b""
    while len(head) < HEAD and (block := stream.read(HEAD - len(head))):
        head += block
    if head.startswith(FASTTEXT_MAGIC):
        raise FormatError(f"{path} is a fastText model: use the .vec file that fastText writes with it")
    other = next((what for magic, what in OTHER_FILES.items() if head.startswith(magic)), None)
    if other:
        raise FormatError(f"{path} holds no word vectors that can be read: it is {other}")
    head = head.removeprefix(BOM)
    header = HEADER.match(head)
    count, width = (int(header[1]), int(header[2])) if header else (0, 0)
    if header and not (count and width):
        raise FormatError(f"{path}, line 1: {count} words of {width} numbers: the file holds nothing")
    rest = io.BufferedReader(Chained(head[header.end() if header else 0 :], stream), HEAD)
    if header and not _is_text(head[header.end() :], width):
        yield from _binary(path, rest, count, width)
    elif b"\0" in head:
        raise FormatError(f"{path} is neither text nor word2vec's binary format, which begins with two numbers")
    else:
        yield from _text(path, rest, count, width)


def _is_text(body: bytes, width: int) -> bool:
    """Return whether the bytes after a header are text: their first line is as it should be, or nothing is binary."""
    _, *numbers = body.split(b"\n", 1)[0].rsplit(None, width) or [b""]
    try:
        if len([float(number) for number in numbers]) == width:
            return True
    except ValueError:
        pass
    try:
        body[:-3].decode("utf-8")  # the end may cut a character
    except UnicodeDecodeError:
        return False
    return not BINARY.search(body)


def _text(path: Path, stream: BinaryIO, count: int, width: int) -> Iterator[tuple[str, np.ndarray]]:
    """Read lines of a word and its numbers, separated by blanks or tabs.

    A word may hold blanks, as in GloVe's 840B: the numbers are counted from the end.
    Other white space than ASCII's is part of it.
    """
    first = 2 if count else 1
    read = 0
    for number, line in enumerate(stream, first):
        where = f"{path}, line {number}"
        if not line.strip():
            raise FormatError(f"{where}: a blank line; delete it")
        width = width or len(line.split()) - 1
        word, *numbers = line.rsplit(None, width) if width > 0 else [line]
        if width < 1 or len(numbers) != width:
            raise FormatError(f"{where}: expected a word and {max(width, 1)} numbers, found {len(numbers)}")
        try:
            vector = np.array([float(number) for number in numbers])
        except ValueError as error:
            raise FormatError(f"{where}: expected a word and {width} numbers ({error})") from None
        _check(vector, where)
        read += 1
        yield word.lstrip().decode("utf-8", "replace"), vector.astype(np.float32)
    if not read:
        raise FormatError(f"{path} is empty")
    if count and read != count:
        raise FormatError(
            f"{path}: its first line says {count:,} words, it holds {read:,}: it is incomplete, or correct that line"
        )


def _binary(path: Path, stream: BinaryIO, count: int, width: int) -> Iterator[tuple[str, np.ndarray]]:
    """Read word2vec's binary format: each word, a blank and float32 numbers (little-endian)."""
    for number in range(1, count + 1):
        word = bytearray()
        while (letter := stream.read(1)) not in (b" ", b""):
            word += letter
            if len(word) > LONGEST_WORD:
                raise FormatError(f"{path}, word {number:,} of {count:,}: it has no end: damaged")
        data = stream.read(4 * width)
        if len(data) != 4 * width:
            raise FormatError(f"{path} ends within word {number:,} of {count:,}")
        vector = np.frombuffer(data, "<f4")
        text = word.decode("utf-8", "replace").lstrip("\n")
        _check(vector, f"{path}, word {number:,} ({text[:40]!r})")
        yield text, vector
    if stream.read(2).strip():
        raise FormatError(f"{path} does not end after the {count:,} words of {width} numbers that its first line says")


def _check(vector: np.ndarray, where: str) -> None:
    good = np.abs(vector) <= LARGEST  # false for NaN
    if not good.all():
        place = int(np.argmin(good))
        raise FormatError(
            f"{where}: number {place + 1} is {vector[place]:g}; word vectors are finite and below {LARGEST:,.0f}: "
            "the file is damaged, or these are no word vectors"
        )
