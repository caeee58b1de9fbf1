"""Disks that tests fill up; the fixture `disk` mounts them."""

import shutil
from pathlib import Path

KIB = 1024


def fill(disk: Path, left: int = 0) -> Path:
    """Take all room but `left` bytes."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        while (free := shutil.disk_usage(disk).free - left) > 0:
            file.write(bytes(min(free, 64 * KIB)))
    return ballast
