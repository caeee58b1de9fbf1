"""Processes that never outlive the test that started them, and small disks."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import processes
import pytest


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen]]:
    """Return `processes.start`; what it started is killed at the end of the test."""
    started: list[subprocess.Popen] = []

    def starting(*arguments, **options) -> subprocess.Popen:
        started.append(processes.start(*arguments, **options))
        return started[-1]

    yield starting
    for process in started:
        if process.poll() is None:
            process.kill()
            process.communicate()


@pytest.fixture
def disk(tmp_path) -> Iterator[Callable[[int], Path]]:
    """Return a function that mounts an empty file system of so many KiB."""
    mounted: list[Path] = []

    def mount(kib: int) -> Path:
        folder = tmp_path / "disk"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            pytest.skip("there is no mount command here")
        if done.returncode:
            pytest.skip(f"mounting a small file system is not permitted here: {done.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)
