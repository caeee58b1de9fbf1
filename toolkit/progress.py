"""Progress on standard error: a bar on a terminal, a line every 30 seconds elsewhere."""

import logging
import sys
import time
from types import TracebackType

from tqdm import tqdm

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_LINES = 30.0


class Progress:
    """A count towards a total, shown with rate and time left; use it as a context manager.

    Args:
        label: what is being done, such as "pretraining".
        total: the count at the end; None where it is not known.
        unit: what is counted.
    """

    def __init__(self, label: str, total: float | None, unit: str) -> None:
        self.label, self.total, self.unit = label, total, unit
        self.count, self._started = 0.0, time.monotonic()
        self._last_line = self._started
        self._bar = tqdm(
            total=total, desc=label, unit=f" {unit}", unit_scale=True, file=sys.stderr, disable=not sys.stderr.isatty()
        )

    def __enter__(self) -> "Progress":
        return self

    def advance(self, amount: float, note: str = "") -> None:
        """Count `amount` more and show `note` behind the figures."""
        self.count += amount
        if not self._bar.disable:
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(amount)
            return
        now = time.monotonic()
        if now - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = now
            logger.info("%s", self._line(now - self._started, note))

    def _line(self, seconds: float, note: str) -> str:
        rate = self.count / max(seconds, 1e-9)
        line = f"{self.label}: {self.count:,.0f}"
        if self.total is not None:
            left = max(0.0, self.total - self.count) / max(rate, 1e-9)
            line += f" of {self.total:,.0f}"
            note = f"{left / 60:.1f} min left{', ' if note else ''}{note}"
        return f"{line} {self.unit}, {rate:,.1f}/s, {note}".rstrip(", ")

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.close()
