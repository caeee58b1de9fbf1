"""Reading HDF5 files that may be damaged: what the library throws at them becomes one clear line."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py

from toolkit.errors import FormatError

# A damaged file makes h5py raise any of these; which one depends on the byte that is wrong.
DAMAGE = (OSError, RuntimeError, KeyError, ValueError, TypeError, AttributeError, MemoryError, OverflowError)


def open_hdf5(path: Path, what: str) -> h5py.File:
    """Open a file for reading.

    Args:
        path: the file.
        what: how the message calls it, such as "dump".

    Raises:
        FormatError: there is no such file, or it is no HDF5 file or cut short.
    """
    if not path.is_file():
        raise FormatError(f"no {what} at {path}")
    try:
        return h5py.File(path, "r")
    except DAMAGE as error:
        raise FormatError(f"{path} is not a readable HDF5 file ({error})") from None


@contextmanager
def damage_reported(where: str) -> Iterator[None]:
    """Turn what h5py raises at damaged data into a FormatError; `where` is the file and perhaps a place in it."""
    try:
        yield
    except DAMAGE as error:
        raise FormatError(f"{where} is damaged ({error}): make it again") from None
