"""The cache of layers: one folder a set of sentences, bounded in bytes, shared by any number of processes."""

import fcntl
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.config import Settings, cache_folder
from toolkit.errors import UsageError
from toolkit.files import atomic_folder, remove_folder, room_for, sweep

logger = logging.getLogger(__name__)

LOCK = ".lock"


@dataclass(frozen=True)
class LayerCache:
    """Folders of layers, the least recently used of which make room for new ones.

    Each folder appears whole or not at all. A process that needs one which another process is writing waits for it. A
    folder that is removed while a process reads it stays readable for that process until it closes its files.

    Attributes:
        folder: what it all lies in; nothing else does. It need not exist and can be deleted at any time.
        limit: bytes that it may hold. Processes that write at the same time do not count what the others are writing.
    """

    folder: Path
    limit: int

    def get(self, key: str, read: Callable[[Path], Any], write: Callable[[Path], None], size: int) -> Any:
        """Return what `read` makes of the folder of a key, written first where it is not there.

        Args:
            key: hexadecimal digits that name the content.
            read: from a folder to a result; None where the folder is damaged, which is then removed and made again.
            write: fills an empty folder.
            size: bytes that it will hold.

        Raises:
            UsageError: it would be larger than the whole cache may be.
            DiskFullError: there is no room for it on the disk.
        """
        path = self.folder / key
        with self._locked(f".{key}{LOCK}"):
            found = read(path) if path.is_dir() else None
            if found is None:
                if path.is_dir():
                    remove_folder(path)
                self._make_room(size)
                with room_for(path, size), atomic_folder(path) as temporary:
                    write(temporary)
                found = read(path)
            os.utime(path)  # the time of its last use
        return found

    def entries(self) -> list[tuple[str, int, float]]:
        """Return key, bytes and time of last use of each folder, the least recently used first."""
        found = []
        for path in self.folder.glob("[!.]*"):
            try:
                found.append((path.name, _size(path), path.stat().st_mtime))
            except FileNotFoundError:  # another process has just removed it
                continue
        return sorted(found, key=lambda entry: entry[2])

    def clear(self) -> None:
        """Remove all folders but those that a process is writing or opening right now."""
        for key, _, _ in self.entries():
            self._remove(key)
        if self.folder.is_dir():
            sweep(self.folder)

    def _make_room(self, size: int) -> None:
        if size > self.limit:
            raise UsageError(
                f"the layers need {size:,} bytes, and the cache may hold {self.limit:,}: raise paths.cache_bytes"
            )
        with self._locked(LOCK):
            entries = self.entries()
            held = sum(held for _, held, _ in entries)
            for key, freed, _ in entries:
                if held + size <= self.limit:
                    break
                if self._remove(key):
                    logger.info("%s/%s, %s bytes, has made room for new layers", self.folder, key, f"{freed:,}")
                    held -= freed

    def _remove(self, key: str) -> bool:
        """Remove a folder, unless a process is in the middle of `get` with it."""
        with (self.folder / f".{key}{LOCK}").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            remove_folder(self.folder / key)
            return True

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        """Hold a lock, which the system takes from a process that is killed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / name).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                logger.info("waiting for another process that writes to %s", self.folder)
                fcntl.flock(file, fcntl.LOCK_EX)
            yield


def layer_cache(settings: Settings) -> LayerCache:
    """Return the cache that the settings name."""
    return LayerCache(cache_folder(settings) / "layers", settings.paths.cache_bytes)


def cache_report(cache: LayerCache, clear: bool) -> tuple[dict[str, Any], str]:
    """Return what a cache holds, as a JSON document and as a sentence; clear it where that is asked."""
    sizes = [size for _, size, _ in cache.entries()]
    document = {"folder": str(cache.folder), "entries": len(sizes), "bytes": sum(sizes), "limit": cache.limit}
    held = f"{len(sizes)} sets of sentences, {sum(sizes):,} bytes of at most {cache.limit:,} (paths.cache_bytes)"
    if clear:
        cache.clear()
    return document | {"cleared": clear}, f"{cache.folder}: {held}{', removed' if clear else ''}"


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())
