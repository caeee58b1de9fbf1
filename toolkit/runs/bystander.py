"""A run seen by a process that takes part in it and does not write it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pandas as pd

from toolkit.runs.writer import RunWriter


class Bystander(RunWriter):
    """The `RunWriter` of all workers but the first: it knows the run's folder and writes nothing.

    Args:
        folder: of the run, which this machine need not see.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.id = folder, folder.name

    def __enter__(self) -> "Bystander":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the status to the worker that writes."""

    def stop_gracefully(self) -> None:
        """Leave the status to the worker that writes."""

    def require_mine(self) -> None:
        """Leave it to the worker that writes to notice that the run was taken over."""

    def metric(
        self,
        name: str,
        value: float,
        step: int | None = None,
        tokens: int | None = None,
        split: str = "train",
        kind: str | None = None,
    ) -> None:
        """Write nothing."""

    def heartbeat(self, progress: float | None = None, seconds_left: float | None = None) -> None:
        """Write nothing."""

    def update(self, **fields: Any) -> None:
        """Write nothing."""

    def results(self, document: Mapping[str, Any]) -> None:
        """Write nothing."""

    def predictions(self, frame: pd.DataFrame) -> None:
        """Write nothing."""

    def layers(self, history: Sequence[Mapping[str, Any]]) -> None:
        """Write nothing."""

    def log(self, text: str) -> None:
        """Write nothing."""
