"""An unfinished HDF5 file that a killed process leaves readable up to its last commit."""

import fcntl
import io
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from toolkit.errors import FormatError, UsageError
from toolkit.files import atomic_path
from toolkit.hdf5 import Output

PAGE = 4096
FORM = "elmo-toolkit partial 1"


class PartialFile(Output):
    """A file that can be brought back to its last commit, whatever ended the process since.

    What is written behind the committed end goes to the disk at once, where the next restoring cuts it off. What would
    change committed bytes waits in memory. A commit writes the waiting bytes to a side file first, whole or not at all,
    and then to their places; restoring writes them there once more, so that it does not matter how far a commit came.

    Args:
        path: the file. It is emptied, or with `restore` brought back to the last commit.
        side: the side file, which `restore` reads and each commit replaces.
        restore: whether to go on with what is there.

    Attributes:
        note: what the last commit was given.

    Raises:
        UsageError: another process is writing the file.
        FormatError: the side file is damaged or of another kind, or the file is shorter than it was at the commit.
    """

    def __init__(self, path: Path, side: Path, restore: bool = False) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        super().__init__(io.FileIO(descriptor, "r+"))
        self._path, self._side = path, side
        self._pages: dict[int, bytearray] = {}  # committed bytes that have changed since, by number of the page
        self._committed = self._length = 0
        self.note: dict[str, np.ndarray] = {}
        try:
            self._lock()
            if restore:
                self._restore()
            else:
                os.ftruncate(descriptor, 0)
        except BaseException:
            self.close()
            raise

    def commit(self, note: Mapping[str, np.ndarray]) -> None:
        """Make the present content what a restoring comes back to. HDF5 has to be flushed before.

        Args:
            note: arrays to be kept with it; names other than form, length, numbers and pages.

        Raises:
            DiskFullError: there is no room for the side file: the last commit still holds.
            OSError: the disk refused something before or now: the last commit still holds.
        """
        if self.failure is not None:
            raise self.failure
        os.fsync(self._file.fileno())
        numbers = sorted(self._pages)
        pages = np.empty((len(numbers), PAGE), np.uint8)
        for page, number in zip(pages, numbers, strict=True):
            self._load(number * PAGE, memoryview(page))  # the page at the border is part on the disk, part in memory
        write_side(self._side, self._length, np.array(numbers, np.int64), pages, note)
        self._apply(self._length, numbers, pages)
        self.note = dict(note)

    def finish(self) -> None:
        """Bring the present content to the disk for good."""
        os.fsync(self._file.fileno())

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{self._path} is being written by another process: wait for it or stop it") from None

    def _restore(self) -> None:
        length, numbers, pages, self.note = read_side(self._side)
        size = super()._size()
        if size < length:
            lengths = f"{size:,} bytes, at its last commit {length:,}"
            raise FormatError(f"{self._path} holds {lengths}: remove it and start anew")
        self._apply(length, numbers, pages)

    def _apply(self, length: int, numbers: np.ndarray | list[int], pages: np.ndarray) -> None:
        for number, page in zip(numbers, pages, strict=True):
            super()._store(int(number) * PAGE, memoryview(page))
        super()._resize(length)
        self._pages.clear()
        self._committed = self._length = length

    def _size(self) -> int:
        return self._length

    def _load(self, offset: int, view: memoryview) -> None:
        super()._load(offset, view)
        end = min(offset + len(view), self._committed)
        for number in range(offset // PAGE, -(-end // PAGE)):
            first, last = max(offset, number * PAGE), min(end, (number + 1) * PAGE)
            if (page := self._pages.get(number)) and first < last:
                view[first - offset : last - offset] = page[first - number * PAGE : last - number * PAGE]

    def _store(self, offset: int, view: memoryview) -> None:
        inside = min(max(self._committed - offset, 0), len(view))
        self._keep(offset, view[:inside])
        super()._store(offset + inside, view[inside:])
        self._length = max(self._length, offset + len(view))

    def _keep(self, offset: int, view: memoryview) -> None:
        done = 0
        while done < len(view):
            number, start = divmod(offset + done, PAGE)
            count = min(PAGE - start, len(view) - done)
            page = self._pages.get(number)
            if page is None:
                page = self._pages[number] = bytearray(PAGE)
                super()._load(number * PAGE, memoryview(page))
            page[start : start + count] = view[done : done + count]
            done += count

    def _resize(self, size: int) -> None:
        if size < self._committed:
            self._keep(size, memoryview(bytes(self._committed - size)))
        super()._resize(max(size, self._committed))
        self._length = size


def write_side(path: Path, length: int, numbers: np.ndarray, pages: np.ndarray, note: Mapping[str, np.ndarray]) -> None:
    """Write a side file atomically and for good.

    Args:
        path: the side file.
        length: of the file at the commit, in bytes.
        numbers: int64 [n], the pages of the file to be written over.
        pages: uint8 [n, PAGE], their content.
        note: other arrays.

    Raises:
        DiskFullError: the disk is full; the side file is as it was.
    """
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez(file, form=np.array(FORM), length=np.int64(length), numbers=numbers, pages=pages, **note)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the pages must not reach their places before the side file's name does
    finally:
        os.close(folder)


def read_side(path: Path) -> tuple[int, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Return length, numbers, pages and note of a side file, see `write_side`.

    Raises:
        FormatError: the file is damaged (each array has its checksum) or of another kind.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            note = dict(archive)
        form, length, numbers, pages = (note.pop(name) for name in ("form", "length", "numbers", "pages"))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise FormatError(f"{path} is damaged ({error}): remove it and what it belongs to, start anew") from None
    if str(form) != FORM:
        raise FormatError(f"{path} is of the format {str(form)!r}, this toolkit reads {FORM!r}")
    return int(length), numbers, pages, note
