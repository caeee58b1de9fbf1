"""Files written whole or not at all, JSON, checksums and fingerprints: the one place that does them."""

import errno
import hashlib
import json
import logging
import math
import os
import re
import shutil
import socket
import stat
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from toolkit.errors import DataError, DiskFullError, FormatError
from toolkit.process import is_alive

logger = logging.getLogger(__name__)

FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
DAY = 86_400.0
DEEPEST_DOCUMENT = 100  # levels of a JSON document
LARGEST_DOCUMENT = 64_000_000  # bytes of a JSON or TOML file
# .NAME.tmp-HOST-PID… is not finished yet, .NAME.old-HOST-PID is being replaced; the host as 8 hexadecimal digits.
# .removing-NAME was being deleted by version 0.1, which left no owner.
_TEMPORARY = re.compile(
    r"\.(?P<name>.+)\.(?P<kind>tmp|old)-(?:(?P<host>[0-9a-f]{8})-(?P<pid>\d+)(?:-.*)?|.*)|\.removing-.+"
)


@contextmanager
def room_for(path: Path, size: int = 0) -> Iterator[None]:
    """Write something inside the block that needs `size` bytes at `path`; tell a full disk in one line.

    Raises:
        DiskFullError: fewer bytes are free before the block begins, or the disk or a quota was full inside it.
    """
    where = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
    if shutil.disk_usage(where).free < size:
        raise DiskFullError(_no_room(path, where, size))
    try:
        yield
    except OSError as error:
        if error.errno not in FULL_DISK:
            raise
        raise DiskFullError(_no_room(path, where, size)) from None


def _no_room(path: Path, where: Path, size: int) -> str:
    needed = f"{size:,} bytes are needed" if size else "the disk is full"
    return f"no room to write {path}: {needed}, {shutil.disk_usage(where).free:,} are free; free some space"


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give a temporary file path beside `path` that takes its place when the block ends without an error.

    Args:
        path: the final file; its folder is made when missing.

    Yields:
        a path in the same folder to write to. On an error it is removed and `path` stays as it was.

    Raises:
        DiskFullError: the disk is full.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp-{_owner()}")
    with room_for(path):
        try:
            yield temporary
            with temporary.open("rb") as file:  # the rename must not reach the disk before the content
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Give a temporary folder beside `path` that takes its place when the block ends without an error.

    An existing folder at `path` is replaced as a whole. What killed processes left beside `path` is swept up first.

    Raises:
        DiskFullError: the disk is full.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    sweep(path.parent)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.tmp-{_owner()}-", dir=path.parent))
    with room_for(path):
        try:
            yield temporary
            temporary.chmod(0o755)
            if path.exists():
                old = path.with_name(f".{path.name}.old-{_owner()}")
                path.rename(old)
                temporary.rename(path)
                shutil.rmtree(old)
            else:
                temporary.rename(path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def remove_folder(path: Path) -> None:
    """Take a folder away in one step, so that no reader finds half of it, then delete it; an absent one is left so."""
    doomed = Path(tempfile.mkdtemp(prefix=f".{path.name}.tmp-{_owner()}-", dir=path.parent))
    try:
        path.rename(doomed / path.name)
    except FileNotFoundError:
        logger.info("%s is gone already", path)
    shutil.rmtree(doomed)


def sweep(folder: Path) -> None:
    """Remove what processes left when they were killed in `atomic_path`, `atomic_folder` or `remove_folder`.

    Left alone is what a living process of this host owns, and what another host may own until it is a day old. A
    folder whose replacement was cut short between its two steps is put back.
    """
    for path in folder.glob(".*"):
        match = _TEMPORARY.fullmatch(path.name)
        if not match or path.is_symlink() or not _is_stale(path, match["host"], match["pid"]):
            continue
        if match["kind"] == "old" and not (final := folder / match["name"]).exists():
            logger.warning("%s is put back: a process was killed while it replaced it", final)
            path.rename(final)
            continue
        logger.info("swept up %s, which a killed process left behind", path)
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)  # another process may be sweeping, too
        else:
            path.unlink(missing_ok=True)


def _is_stale(path: Path, host: str | None, pid: str | None) -> bool:
    if pid is not None and host == _host():
        return not is_alive(int(pid), None)
    try:
        newest = max(part.stat().st_mtime for part in (path, *path.glob("*")))
    except FileNotFoundError:  # its owner has just finished
        return False
    return time.time() - newest > DAY


def _owner() -> str:
    return f"{_host()}-{os.getpid()}"


def _host() -> str:
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write a JSON document atomically: UTF-8, indented, not-a-number refused by `ValueError`."""
    write_text(path, json_text(value))


def json_text(value: Any) -> str:
    """Return a JSON document as `write_json` writes it."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_json(path: Path) -> Any:
    """Read a JSON document.

    Raises:
        FormatError: the file is missing, too large, not UTF-8 or not JSON, or holds a number that is not finite; the
            message names the file and the place.
    """
    text = read_document(path)
    try:
        value = json.loads(text, parse_constant=_not_finite, parse_float=_finite)
        _check_depth(value)
        if "\\u" in text:  # half of a pair is no character: nothing can print or store it
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        return value
    except RecursionError:
        raise FormatError(f"{path} is not valid JSON (it is nested too deeply)") from None
    except ValueError as error:  # what json raises, numbers of thousands of digits, and what the checks here raise
        raise FormatError(f"{path} is not valid JSON ({error})") from None


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML document.

    Raises:
        FormatError: the file is missing, too large, not UTF-8 or not TOML; the message names the file and the place.
    """
    text = read_document(path)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise FormatError(f"{path} is not valid TOML (it is nested too deeply)") from None
    except ValueError as error:  # TOMLDecodeError, numbers of thousands of digits
        raise FormatError(f"{path} is not valid TOML ({error})") from None


def read_document(path: Path) -> str:
    """Return the text of a small UTF-8 file.

    Raises:
        FormatError: the file is missing, no regular file, larger than `LARGEST_DOCUMENT`, or not UTF-8.
    """
    path = Path(path)
    try:
        state = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise FormatError(f"{path} is missing") from None
    if not stat.S_ISREG(state.st_mode):  # a pipe would be waited for
        raise FormatError(f"{path} is not a regular file")
    if state.st_size > LARGEST_DOCUMENT:
        raise FormatError(f"{path} has {state.st_size:,} bytes, at most {LARGEST_DOCUMENT:,} are read")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is not UTF-8 ({error})") from None


def _check_depth(value: Any) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > DEEPEST_DOCUMENT:
            raise RecursionError
        inner = (part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list))
        level = [part for parts in inner for part in parts]


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _not_finite(text)


def _not_finite(text: str) -> float:
    raise ValueError(f"the number {text} is not finite")


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes as 64 hexadecimal digits."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_sha256(path: Path, expected: str, advice: str) -> None:
    """Compare a file with the checksum of the published one.

    Raises:
        DataError: they differ; the message holds both and ends with `advice`.
    """
    found = sha256(path)
    if found != expected:
        raise DataError(f"{path} has the sha256 {found}, the published file {expected}: {advice}")


def fingerprint(value: Any) -> str:
    """Return 16 hexadecimal digits that name a JSON value, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
