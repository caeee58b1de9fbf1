"""HDF5 files that may meet a full disk or be damaged: what the library does then becomes one clear line."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import h5py

from toolkit.errors import FormatError
from toolkit.files import atomic_path
from toolkit.localhdf5 import LocalFile

# A damaged file makes h5py raise any of these; which one depends on the byte that is wrong.
DAMAGE = (OSError, RuntimeError, KeyError, ValueError, TypeError, AttributeError, MemoryError, OverflowError)


class Output(io.RawIOBase):
    """A file that HDF5 writes to and that never fails, since HDF5 brings the process down at its exit after a failure.

    What the disk refuses is kept as `failure`, and nothing more is written from then on: the caller raises it once HDF5
    has closed the file.

    Args:
        file: open for reading and writing, unbuffered.
    """

    def __init__(self, file: io.FileIO) -> None:
        super().__init__()
        self._file, self._position = file, 0
        self.failure: OSError | None = None

    def readable(self) -> bool:
        """Return True."""
        return True

    def writable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place in the file."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position}
        self._position = offset + (self._size() if whence == io.SEEK_END else start[whence])
        return self._position

    def readinto(self, buffer: bytearray | memoryview) -> int:
        """Read to fill a buffer; what was never written is zeros."""
        view = memoryview(buffer).cast("B")
        self._load(self._position, view)
        self._position += len(view)
        return len(view)

    def write(self, data: bytes | memoryview) -> int:
        """Write all of some bytes, or nothing once the disk has refused some."""
        view = memoryview(data).cast("B")
        if self.failure is None:
            try:
                self._store(self._position, view)
            except OSError as error:
                self.failure = error
        self._position += len(view)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Set the length of the file, by default to the place where it stands."""
        size = self._position if size is None else size
        if self.failure is None:
            try:
                self._resize(size)
            except OSError as error:
                self.failure = error
        return size

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _load(self, offset: int, view: memoryview) -> None:
        done = 0
        while done < len(view) and (data := os.pread(self._file.fileno(), len(view) - done, offset + done)):
            view[done : done + len(data)] = data
            done += len(data)
        view[done:] = bytes(len(view) - done)

    def _store(self, offset: int, view: memoryview) -> None:
        done = 0
        while done < len(view):
            done += os.pwrite(self._file.fileno(), view[done:], offset + done)

    def _resize(self, size: int) -> None:
        os.ftruncate(self._file.fileno(), size)


@contextmanager
def writing_hdf5(path: Path) -> Iterator[h5py.File]:
    """Give an HDF5 file to fill that takes its place when the block ends without an error, as `atomic_path` does.

    Raises:
        DiskFullError: the disk is full; `path` is as it was.
    """
    with atomic_path(path) as temporary, Output(io.FileIO(temporary, "w+")) as output:
        try:
            with h5py.File(output, "w") as file:
                yield file
        except DAMAGE:
            if output.failure is None:
                raise
        if output.failure is not None:  # which explains any error of the library, too
            raise output.failure


def open_local(file: Path | str | BinaryIO, where: str) -> LocalFile:
    """Open a file for reading, of which nothing may lie in another file: every reader of HDF5 comes by here.

    Args:
        file: its path, or its content in memory.
        where: how messages call it.

    Raises:
        FormatError: it is no HDF5 file or cut short.
    """
    try:
        return LocalFile(file, "r")
    except DAMAGE as error:
        raise FormatError(f"{where} is not a readable HDF5 file ({error})") from None


def open_hdf5(path: Path, what: str) -> LocalFile:
    """Open a file for reading, as `open_local` does.

    Args:
        path: the file.
        what: how the message calls it, such as "dump".

    Raises:
        FormatError: there is no such file, or it is no HDF5 file or cut short.
    """
    if not path.is_file():
        raise FormatError(f"no {what} at {path}")
    return open_local(path, str(path))


@contextmanager
def damage_reported(where: str) -> Iterator[None]:
    """Turn what h5py raises at damaged data into a FormatError; `where` is the file and perhaps a place in it."""
    try:
        yield
    except DAMAGE as error:
        raise FormatError(f"{where} is damaged ({error}): make it again") from None
