"""Processes that never outlive the test that started them."""

import subprocess
from collections.abc import Callable, Iterator

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
