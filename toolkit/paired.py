"""Two systems on the same test examples: difference, interval, p-value, and the sentence that says it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from toolkit.metrics import CountMetric
from toolkit.stats import LEVEL, RESAMPLES, holm, mcnemar_exact, paired_bootstrap_score, randomisation_test

SIGNIFICANCE = 1 - LEVEL


@dataclass(frozen=True)
class Paired:
    """A paired comparison of b with a.

    Attributes:
        metric: its name; a higher value is better.
        difference: b's score minus a's, each the mean over seeds, with `low` and `high` as its 95 % interval over
            examples.
        p_value: two-sided.
        n: examples.
        seeds: seeds averaged on each side, (a, b).
        test: what gave the p-value.
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
        figures = f"95% interval {low:+.1f} to {high:+.1f}, n = {self.n}, {p}, {self.test})."
        metric = self.metric.replace("_", " ")
        if self.significant:
            better, worse = (b, a) if points > 0 else (a, b)
            return (
                f"{better} is better than {worse} by {abs(points):.1f} points of {metric} "
                f"(difference {points:+.1f}, {figures}"
            )
        return f"No clear difference between {a} and {b} ({points:+.1f} points of {metric} for {b}, {figures}"


def compare_paired(
    metric: CountMetric, gold: npt.ArrayLike, a: npt.ArrayLike, b: npt.ArrayLike, seed: int = 0
) -> Paired:
    """Compare two systems on the same examples.

    Interval and p-value both speak of other test examples, for the average of these very seeds; `t_interval` speaks
    of other seeds.

    Args:
        metric: what is compared.
        gold: [n], texts.
        a, b: [seeds, n] or [n], predictions at the same examples.
        seed: of the resamples.

    Raises:
        ValueError: the numbers of examples differ, or there is none.
        DataError: the predictions do not fit the metric.
    """
    counts_a, counts_b = _counts(metric, gold, a, b)
    # Averaging right answers over the seeds first gives the same interval from fewer distinct rows, many times faster.
    sides = [side.mean(0) if metric.of_answers else side for side in (counts_a, counts_b)]
    difference, low, high = paired_bootstrap_score(*sides, metric.score, seed)
    p_value, test = _tested(metric, counts_a, counts_b, RESAMPLES, seed)
    seeds = len(counts_a), len(counts_b)
    return Paired(metric.name, difference, low, high, p_value, counts_a.shape[1], seeds, test)


def paired_p_value(
    metric: CountMetric,
    gold: npt.ArrayLike,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[float, str]:
    """Return the p-value of `compare_paired` and the test's name, without the interval; errors as there.

    Args:
        metric, gold, a, b, seed: as in `compare_paired`.
        resamples: of the randomisation test.
    """
    return _tested(metric, *_counts(metric, gold, a, b), resamples, seed)


def corrected(pairs: Sequence[Paired]) -> list[Paired]:
    """Return comparisons with Holm's correction over them; a single one needs none."""
    if len(pairs) < 2:
        return list(pairs)
    adjusted = holm([pair.p_value for pair in pairs])
    return [replace(pair, p_holm=float(p), comparisons=len(pairs)) for pair, p in zip(pairs, adjusted, strict=True)]


def p_text(value: float) -> str:
    """Return "p = 0.034" or "p < 0.001"."""
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def _counts(metric: CountMetric, gold: npt.ArrayLike, a: npt.ArrayLike, b: npt.ArrayLike) -> list[npt.NDArray]:
    gold, a, b = np.asarray(gold, object), *(np.atleast_2d(np.asarray(side, object)) for side in (a, b))
    if not a.shape[1] == b.shape[1] == len(gold):
        raise ValueError(
            f"paired values must be of the same examples, got {len(gold)} gold ones and the shapes "
            f"{a.shape} and {b.shape}"
        )
    return np.split(metric.counts(gold, np.concatenate([a, b])), [len(a)])


def _tested(metric: CountMetric, a: npt.NDArray, b: npt.NDArray, resamples: int, seed: int) -> tuple[float, str]:
    """Return p-value and test.

    With one seed on each side and one answer an example, right or wrong, it is McNemar's test, exact. Else each
    example's counts are averaged over the seeds of a side and exchanged at random, of which McNemar's test is the case
    of one seed: testing one seed of several would depend on which, and pooling them would count each example several
    times. The score of averaged counts is the mean of the seeds' scores for an accuracy, close to it for others.
    """
    if metric.of_answers and len(a) == len(b) == 1 and (a[..., 1] == 1).all():
        return mcnemar_exact(a[0, :, 0], b[0, :, 0]), "exact McNemar test"
    seeds = max(len(a), len(b))
    test = f"paired randomisation test over {seeds} seeds" if seeds > 1 else "paired randomisation test"
    return randomisation_test(a.mean(0), b.mean(0), metric.score, seed, resamples), test
