"""Two systems on the same test examples: difference, interval, p-value, and the sentence that says it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from toolkit.metrics import CountMetric
from toolkit.stats import LEVEL, example_values, holm, paired_spread

SIGNIFICANCE = 1 - LEVEL


@dataclass(frozen=True)
class Paired:
    """A paired comparison of b with a.

    Attributes:
        metric: its name; a higher value is better.
        difference: b's score minus a's, each the mean over seeds, with `low` and `high` as its 95 % interval over
            examples, and over seeds where `varied` says so; it leaves 0 out exactly where `p_value` is below 0.05.
        p_value: two-sided.
        n: examples.
        seeds: seeds averaged on each side, (a, b).
        test: what gave the p-value.
        varied: whether each side has seeds that differ, so that the claim is about its trainings in general and not
            about the given one only.
        p_holm: the p-value after Holm's correction over `comparisons` of them; None for a comparison by itself.
    """

    metric: str
    difference: float
    low: float
    high: float
    p_value: float
    n: int
    seeds: tuple[int, int]
    test: str
    p_holm: float | None = None
    comparisons: int = 1
    varied: tuple[bool, bool] = (False, False)

    @property
    def significant(self) -> bool:
        """Whether the difference holds at 0.05, after the correction where there is one."""
        return (self.p_value if self.p_holm is None else self.p_holm) < SIGNIFICANCE

    def sentence(self, a: str, b: str) -> str:
        """Say in one sentence whether b is better than a; scores are told in points of a hundred."""
        points, low, high = (100 * value for value in (self.difference, self.low, self.high))
        p = p_text(self.p_value)
        if self.p_holm is not None:
            p += f", with Holm's correction over {self.comparisons} comparisons {p_text(self.p_holm)}"
        figures = f"95% interval {low:+.1f} to {high:+.1f}, n = {self.n}, {p}, {self.test}{self._scope(a, b)})."
        metric = self.metric.replace("_", " ")
        if self.significant:
            better, worse = (b, a) if points > 0 else (a, b)
            return (
                f"{better} is better than {worse} by {abs(points):.1f} points of {metric} "
                f"(difference {points:+.1f}, {figures}"
            )
        return f"No clear difference between {a} and {b} ({points:+.1f} points of {metric} for {b}, {figures}"

    def _scope(self, a: str, b: str) -> str:
        """Say which trainings the claim is about where it is not about trainings in general."""
        fixed = [
            (name, seeds) for name, seeds, varied in zip((a, b), self.seeds, self.varied, strict=True) if not varied
        ]
        if not fixed:
            return ""
        if len(fixed) == 2 and self.seeds == (1, 1):
            return "; about these two trainings only"
        texts = [
            f"about this one training of {name} only" if seeds == 1 else f"the seeds of {name} give the same"
            for name, seeds in fixed
        ]
        return "; " + "; ".join(texts)


def compare_paired(metric: CountMetric, gold: npt.ArrayLike, a: npt.ArrayLike, b: npt.ArrayLike) -> Paired:
    """Compare two systems on the same examples by a t test whose variance counts examples and trainings.

    Of two systems of equal accuracy it calls one better in 3 to 7 % of trials, whether seeds differ by 0, 1 or 2 points
    and whether there are 2, 3 or 5 of them (docs/statistics.md, which also has the power: a true difference of 3 points
    on 804 examples is found in 44 % of trials with 3 seeds per side that deviate by 1 point, in 24 % by 2 points). A
    side of one seed, or whose seeds all give the same, is compared as it is: over examples only.

    Args:
        metric: what is compared.
        gold: [n], texts.
        a, b: [seeds, n] or [n], predictions at the same examples.

    Raises:
        ValueError: the numbers of examples differ, or there is none.
        DataError: the predictions do not fit the metric.
    """
    gold, a, b = np.asarray(gold, object), *(np.atleast_2d(np.asarray(side, object)) for side in (a, b))
    if not a.shape[1] == b.shape[1] == len(gold):
        raise ValueError(
            f"paired values must be of the same examples, got {len(gold)} gold ones and the shapes "
            f"{a.shape} and {b.shape}"
        )
    counts = metric.counts(gold, np.concatenate([a, b]))
    scores = metric.score(counts.sum(1))
    difference = float(scores[len(a) :].mean() - scores[: len(a)].mean())
    sides = np.split(example_values(counts, metric.score), [len(a)])
    shrunk, spread = paired_spread(*sides)
    varied = tuple(bool(np.ptp(side, axis=0).any()) for side in sides)
    half, reach = spread.half_width(), metric.bounds[1] - metric.bounds[0]
    low, high = max(-reach, float(shrunk) - half), min(reach, float(shrunk) + half)
    test = f"paired t test over examples{' and seeds' if any(varied) else ''}"
    seeds = len(a), len(b)
    return Paired(
        metric.name, difference, low, high, float(spread.p_value(shrunk)), len(gold), seeds, test, varied=varied
    )


def corrected(pairs: Sequence[Paired]) -> list[Paired]:
    """Return comparisons with Holm's correction over them; a single one needs none."""
    if len(pairs) < 2:
        return list(pairs)
    adjusted = holm([pair.p_value for pair in pairs])
    return [replace(pair, p_holm=float(p), comparisons=len(pairs)) for pair, p in zip(pairs, adjusted, strict=True)]


def p_text(value: float) -> str:
    """Return "p = 0.034" or "p < 0.001"."""
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"
