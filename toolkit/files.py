"""Files written whole or not at all, JSON, checksums and fingerprints: the one place that does them."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from toolkit.errors import DataError, FormatError


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give a temporary file path beside `path` that takes its place when the block ends without an error.

    Args:
        path: the final file; its folder is made when missing.

    Yields:
        a path in the same folder to write to. On an error it is removed and `path` stays as it was.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
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

    An existing folder at `path` is replaced as a whole.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.tmp-", dir=path.parent))
    try:
        yield temporary
        temporary.chmod(0o755)
        if path.exists():
            old = path.with_name(f".{path.name}.tmp-old-{os.getpid()}")
            path.rename(old)
            temporary.rename(path)
            shutil.rmtree(old)
        else:
            temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write a JSON document atomically: UTF-8, indented, not-a-number refused by `ValueError`."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON document.

    Raises:
        FormatError: the file is missing, not UTF-8 or not JSON; the message names the file and the place.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FormatError(f"{path} is missing") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"{path} is not valid JSON ({error})") from None


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
