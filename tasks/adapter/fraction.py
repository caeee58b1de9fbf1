"""A part of the training examples: every class in it, and each larger part holds the smaller ones."""

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from tasks.task import Example, share
from toolkit.errors import UsageError


def fractions_of(text: str | None) -> list[float]:
    """Read a comma-separated list of fractions; None gives none.

    Raises:
        UsageError: one is no number above 0 and at most 1, or stands twice.
    """
    found: list[float] = []
    for part in text.split(",") if text is not None else ():
        try:
            fraction = float(part)
        except ValueError:
            fraction = math.nan
        if not 0 < fraction <= 1:
            raise UsageError(f"train fraction {part.strip()!r} in {text!r}: give numbers above 0, at most 1")
        if fraction in found:
            raise UsageError(f"the train fraction {fraction:g} stands twice in {text!r}")
        found.append(fraction)
    return found


def part_of(examples: Sequence[Example], rows: np.ndarray, fraction: float, seed: int) -> np.ndarray:
    """Return a share of the training rows, in their order; the same on every machine.

    Examples are drawn by a hash of seed and id. Of examples with a label it is that share of each class, one example
    at least. Of examples with tags the first ones that show each tag come before all others.

    Args:
        examples: all of a task.
        rows: int, those that may be drawn.
        fraction: above 0, at most 1.
        seed: another one draws another part.
    """
    if fraction == 1:
        return rows
    order = sorted(rows.tolist(), key=lambda row: share(f"{seed} {examples[row].id}"))
    if any(examples[row].tags for row in order):
        return np.array(sorted(_first_of_tags(examples, order, fraction)), rows.dtype)
    classes: dict[str, list[int]] = defaultdict(list)
    for row in order:
        classes[examples[row].label].append(row)
    kept = [row for of_class in classes.values() for row in of_class[: _size(fraction, len(of_class))]]
    return np.array(sorted(kept), rows.dtype)


def _first_of_tags(examples: Sequence[Example], order: list[int], fraction: float) -> list[int]:
    seen: set[str] = set()
    first = []
    for row in order:
        if not seen.issuperset(examples[row].tags):
            first.append(row)
            seen.update(examples[row].tags)
    chosen = set(first)
    others = [row for row in order if row not in chosen]
    return [*first, *others[: max(0, _size(fraction, len(order)) - len(first))]]


def _size(fraction: float, total: int) -> int:
    """Return the share of a total, rounded up; exact in decimals, where 0.07 * 100 in floating point is above 7."""
    return math.ceil(Fraction(repr(float(fraction))) * total)
