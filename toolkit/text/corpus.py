"""Finding the files of a corpus and streaming their lines."""

import bz2
import difflib
import glob
import gzip
import io
import logging
import lzma
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from toolkit.errors import DataError, UsageError
from toolkit.text.encoding import advice

logger = logging.getLogger(__name__)

OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
NOTES = {
    "source",
    "readme",
    "license",
    "licence",
}  # X.txt beside a corpus says where it came from; it is not the corpus
ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".7z")
BOM = b"\xef\xbb\xbf"
UTF16 = (b"\xff\xfe", b"\xfe\xff")  # byte order marks of the other encoding that is common
SAMPLED = 1 << 16  # bytes that show how lines end, or from which an encoding is guessed


@dataclass(frozen=True)
class Roles:
    """The files of a corpus by what they are for."""

    train: list[Path]
    valid: list[Path]
    test: list[Path]


def resolve(patterns: Sequence[str | Path]) -> list[Path]:
    """Find the files that paths, folders and globs name.

    A folder stands for all its text files, subfolders included: `.txt`, `.txt.gz`, `.txt.bz2`, `.txt.xz`, and `.gz`,
    `.bz2`, `.xz` without an inner suffix. Its hidden files and its notes of origin (`SOURCE.txt`, `README.txt`,
    `LICENSE.txt`) are left out, from a glob's matches too. A file that is named is taken whatever it is called.

    Args:
        patterns: files, folders or globs (`**` spans folders); quotes around one and a leading `~` are tolerated.

    Returns:
        the files, each once, in the order of the patterns and sorted by name within one.

    Raises:
        UsageError: nothing is named, a pattern matches nothing (with the working folder and what lies near), or a
            match is an archive.
    """
    if not patterns:
        raise UsageError("no corpus is named: give files, folders or globs")
    files: dict[Path, Path] = {}
    for pattern in map(str, patterns):
        if not pattern.strip(" '\""):
            raise UsageError("an empty text names no corpus: give files, folders or globs")
        for file in _matches(pattern):
            check_name(file)
            if file.name.lower().endswith(ARCHIVES):
                raise UsageError(f"{file} is an archive: unpack it and name the folder")
            files.setdefault(file.resolve(), file)
    return list(files.values())


def split_roles(files: Sequence[Path]) -> Roles:
    """Tell training, validation and test files apart by their names.

    A name whose first run of letters is valid, validation or dev is validation text, one with test or tests is test
    text (`valid.txt`, `dev-00.txt.xz`, `test_2.gz`, but not `devices.txt`); the rest is training text.
    """
    roles = Roles([], [], [])
    for file in files:
        word = re.match(r"[a-z]*", file.name.lower()).group()
        if word in ("valid", "validation", "dev"):
            roles.valid.append(file)
        elif word in ("test", "tests"):
            roles.test.append(file)
        else:
            roles.train.append(file)
    return roles


def lines(path: Path, limit: int | None = None) -> Iterator[str]:
    """Stream a file's lines, blank ones too, without their ends; `.gz`, `.bz2` and `.xz` are decompressed.

    A byte order mark at the start is dropped. Lines end in a line feed, with or without a carriage return; where the
    beginning of a file has carriage returns alone, as old Macs write them, these end the lines.

    Args:
        path: the file.
        limit: the most bytes held as one line, 8 or more; a longer line is cut into several, each at the last
            ASCII blank before the limit, or at the limit where there is none. None never cuts.

    Raises:
        DataError: bytes are not UTF-8 (with file, line and column, both from 1, the column in characters), or the
            compressed data is damaged or ends too early.
    """
    with opened(path) as (_, stream):
        yield from decoded(stream, path, limit)


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Open a file twice over: the bytes on disk, whose `tell` shows the progress, and the decompressed bytes."""
    with Path(path).open("rb") as raw:
        opener = OPENERS.get(Path(path).suffix.lower())
        if opener is None:
            yield raw, raw
        else:
            with opener(raw) as stream:
                yield raw, stream


def decoded(stream: BinaryIO, path: Path, limit: int | None) -> Iterator[str]:
    """Yield the lines of an open stream; arguments and errors as in `lines`, `path` is for messages."""
    number = column = 1
    for piece, whole in pieces(stream, path, limit):
        first = number == column == 1
        piece = piece.removeprefix(BOM) if first else piece
        try:
            text = piece.decode("utf-8")
        except UnicodeDecodeError as error:
            following = stream.read(SAMPLED) if len(piece) < SAMPLED else b""
            raise _not_utf8(path, number, column, piece, error.start, following) from None
        yield text.rstrip("\r\n") if whole else text
        number, column = (number + 1, 1) if whole else (number, column + len(text))


def pieces(stream: BinaryIO, path: Path, limit: int | None) -> Iterator[tuple[bytes, bool]]:
    """Yield the bytes of an open stream line by line as `lines` cuts them, and whether each piece ends its line.

    Line ends and a byte order mark are kept. The last line may come without an end, and without a piece that ends it.

    Raises:
        DataError: the compressed data is damaged or ends too early; `path` is for the message.
    """
    carried = _read(stream, path, min(SAMPLED, limit or SAMPLED))
    if b"\r" in carried[:-1] and not carried.endswith(b"\n"):
        logger.info("%s: its lines end in carriage returns alone; read so", path)
        stream, carried = io.BufferedReader(Chained(carried, stream, b"\r", b"\n")), b""
    while True:
        room = -1 if limit is None else limit - len(carried)
        piece = carried if carried.endswith(b"\n") else carried + _read(stream, path, room)
        if not piece:
            return
        whole = piece.endswith(b"\n") or limit is None or len(piece) < limit
        cut = len(piece) if whole else _cut(piece)
        carried = piece[cut:]
        yield piece[:cut], whole


class Chained(io.RawIOBase):
    """The bytes of `head`, which have been read already, then those of a stream, each byte `old` as `new`."""

    def __init__(self, head: bytes, stream: BinaryIO, old: bytes = b"", new: bytes = b"") -> None:
        self.head, self.stream, self.table = head, stream, bytes.maketrans(old, new)

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: memoryview) -> int:
        """Fill the buffer; 0 at the end."""
        block = self.head[: len(buffer)] or self.stream.read(len(buffer))
        self.head = self.head[len(block) :]
        buffer[: len(block)] = block.translate(self.table)
        return len(block)


def _read(stream: BinaryIO, path: Path, size: int) -> bytes:
    try:
        return stream.readline(size)
    except (EOFError, lzma.LZMAError, zlib.error) as error:
        raise DataError(f"{path} is damaged or incomplete: {error}; fetch it again") from None
    except OSError as error:
        if error.errno is not None:  # the disk's own failure; gzip and bz2 raise theirs without a number
            raise
        raise DataError(f"{path} is damaged or not what its suffix says: {error}; fetch it again") from None


def _cut(piece: bytes) -> int:
    blank = max(piece.rfind(b" "), piece.rfind(b"\t"))
    if blank > 0:
        return blank + 1
    end = len(piece)
    while end > len(piece) - 4 and piece[end - 1] & 0xC0 == 0x80:  # back over the tail of a character
        end -= 1
    return end - 1 if piece[end - 1] >= 0xC0 else len(piece)


def _not_utf8(path: Path, number: int, column: int, piece: bytes, at: int, following: bytes) -> DataError:
    """Return the error for the byte at `at` of a piece of a line that begins at `column`; `following` is a sample."""
    if number == column == 1 and piece.startswith(UTF16):
        return DataError(f"{path} is UTF-16 text, not UTF-8; convert the file: iconv -f utf-16 -t utf-8")
    column += len(piece[:at].decode("utf-8"))
    byte = f"{path}, line {number}, column {column}: byte 0x{piece[at]:02x} is not UTF-8"
    start = max(0, at - SAMPLED // 2)
    return DataError(f"{byte}; {advice((piece + following)[start : at + SAMPLED], at - start)}")


def _matches(pattern: str) -> list[Path]:
    if not Path(pattern).exists() and len(pattern) > 1 and pattern[0] == pattern[-1] and pattern[0] in "'\"":
        pattern = pattern[1:-1]
    path = Path(pattern).expanduser()
    if path.is_file():
        return [path]
    if path.is_dir():
        return _text_files(path)
    found: list[Path] = []
    for match in sorted(Path(name) for name in glob.glob(str(path), recursive=True)):  # noqa: PTH207 absolute ones too
        if match.is_dir():
            if "**" not in pattern:  # which lists the files inside by itself
                found += _text_files(match, may_be_empty=True)
        elif not _is_note(match):
            found.append(match)
    if not found:
        raise UsageError(f"no file matches {pattern!r} (working folder {Path.cwd()}){near(path)}")
    return found


def _text_files(folder: Path, may_be_empty: bool = False) -> list[Path]:
    every = sorted(Path(parent) / name for parent, _, names in os.walk(folder) for name in names)
    found = [file for file in every if _is_text(file) and not _is_note(file)]
    if not found and not may_be_empty:
        names = ", ".join(file.name for file in every[:5]) + (", …" if len(every) > 5 else "")
        holds = f"it holds {names}; name them by a glob, e.g. '{folder / '*'}'" if every else "it is empty"
        raise UsageError(f"folder {folder} (working folder {Path.cwd()}) has no .txt, .gz, .bz2 or .xz text: {holds}")
    return found


def _is_text(file: Path) -> bool:
    compressed = file.suffix.lower() in OPENERS
    inner = Path(file.stem).suffix.lower() if compressed else file.suffix.lower()
    return not file.name.startswith(".") and (inner == ".txt" or (compressed and not inner))


def _is_note(file: Path) -> bool:
    note = file.suffix.lower() == ".txt" and file.stem.lower() in NOTES
    if note:
        logger.info("%s is left out: it describes the corpus", file)
    return note


def check_name(path: Path) -> None:
    """Refuse a path that no record could hold.

    Raises:
        UsageError: its bytes are not UTF-8.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode("utf-8", "backslashreplace")
        raise UsageError(f"the name of {shown} is not UTF-8: rename it, so that runs can record it") from None


def near(path: Path) -> str:
    """Return the end of a message about a path that is not there: "; in FOLDER there is: the nearest names"."""
    folder = next(parent for parent in path.absolute().parents if parent.is_dir())
    names = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
    nearest = difflib.get_close_matches(path.name, names, n=3, cutoff=0.5) or names[:5]
    return f"; in {folder} there is: {', '.join(nearest)}" if nearest else f"; {folder} is empty"
