"""Intervals and the paired test of scores, and the correction for several tests: pure functions over arrays.

A score varies for two reasons: another test set has other examples, and another training (seed) gives another
classifier. Both count. Every training answers every example, which is the crossed design of multi-reader multi-case
studies (Dorfman, Berbaum and Metz 1992; Obuchowski and Rockette 1995): trainings stand for readers, examples for cases.

A score that is no mean of examples, such as F1, is given as counts that examples add to, float [s, n, k] for s seeds
and n examples, and a function from their sums [..., k] to the score [...] (`toolkit.metrics`). `example_values` turns
it into one value per example by the jackknife. docs/statistics.md has the simulated error rates and the power.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special, stats
from scipy.optimize import brentq

LEVEL = 0.95
ADDED = 2  # examples added to a paired comparison: half of one for each of the four outcomes (Agresti and Min 2005)
# Added to the degrees of freedom between seeds. Chosen by simulation: of equal systems with two seeds per side the test
# calls one better in 2 to 4 % of trials with 0, in up to 7.3 % with 0.5, in 3 to 6 % with 0.25, where 5 % is meant.
PRIOR = 0.25
_STEPS = (np.arange(200) + 0.5) / 200
_QUANTILES = _STEPS**3  # of chi-squared: dense near 0, from where the tail of the mixture comes
_WEIGHTS = _STEPS**2 / (_STEPS**2).sum()

Floats = npt.NDArray[np.float64]
Score = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Spread:
    """The variance of an estimate by source; arrays [...] hold one entry per estimate.

    Attributes:
        examples: over other test examples, for these very trainings.
        seeds: what other trainings add; 0 where it is not estimated.
        examples_df, seeds_df: degrees of freedom of the two; `seeds_df` is 0 where `seeds` is not estimated.
    """

    examples: Floats
    seeds: Floats
    examples_df: float
    seeds_df: float

    def p_value(self, distance: npt.ArrayLike) -> Floats:
        """Return the two-sided p-value [...] of estimates at these distances [...] from the hypothesis.

        Few seeds say little of the variance over seeds: the p-value is the mean over what it may be, `seeds` times
        df / chi-squared, as in the Behrens-Fisher problem. Without it this is Student's t test.
        """
        sizes, weights = np.zeros(1), np.ones(1)
        if self.seeds_df:
            sizes, weights = self.seeds_df / stats.chi2.ppf(_QUANTILES, self.seeds_df + PRIOR), _WEIGHTS
        examples, seeds = (np.asarray(part, float)[..., None] for part in (self.examples, self.seeds))
        t = np.abs(np.asarray(distance, float))[..., None] / np.sqrt(examples + seeds * sizes)
        return np.minimum(1.0, 2 * special.stdtr(self.examples_df, -t) @ weights)

    def half_width(self) -> float:
        """Return half of the 95 % interval of one estimate: the distance at which `p_value` is 0.05."""
        deviation = float(np.sqrt(self.examples + self.seeds))
        if not deviation:
            return 0.0
        return float(brentq(lambda distance: self.p_value(distance) - (1 - LEVEL), 0.0, 1e4 * deviation, rtol=1e-9))


def example_values(counts: npt.ArrayLike, score: Score) -> Floats:
    """Return one value per example [s, n], whose mean over examples is the score: jackknife pseudo-values, centred.

    Of an accuracy with one answer per example these are 1 where it is right and 0 where it is wrong.

    Args:
        counts: [s, n, k], what each example adds.
        score: from sums [..., k] to scores [...].

    Raises:
        ValueError: there is no example, or a count is not finite.
    """
    array = np.asarray(counts, dtype=np.float64)
    if array.ndim != 3 or not array.size:
        raise ValueError(f"expected counts of at least one example, [s, n, k], got the shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("a count is not finite")
    sums, n = array.sum(1, keepdims=True), array.shape[1]
    whole = score(sums)
    if n == 1:
        return whole
    without = score(sums - array)
    return whole + (n - 1) * (without.mean(1, keepdims=True) - without)


def score_interval(counts: npt.ArrayLike, score: Score, lowest: float = 0.0) -> tuple[float, float]:
    """Return the 95 % interval over examples of the score of one training.

    It is Wilson's (1927) interval, which is right at 0 %, at 100 % and for one example. Of a score that is no share of
    right answers it is that of a share as uncertain as the score (effective sample size, Korn and Graubard 1998).

    Args:
        counts: [n, k], what each example adds.
        score: from sums [..., k] to scores [...], at most 1.
        lowest: the lowest possible score.

    Raises:
        ValueError: there is no example, or a count is not finite.
    """
    (values,) = example_values(np.asarray(counts, float)[None], score)
    share = float(np.clip((values.mean() - lowest) / (1 - lowest), 0, 1))
    n = len(values)
    variance = float(values.var()) / n / (1 - lowest) ** 2
    size = share * (1 - share) / variance if variance > 1e-15 and 0 < share < 1 else n
    z = stats.norm.ppf((1 + LEVEL) / 2)
    centre = (share + z**2 / (2 * size)) / (1 + z**2 / size)
    half = z / (1 + z**2 / size) * np.sqrt(share * (1 - share) / size + z**2 / (4 * size**2))
    # At 0 and 1 the bound is the score itself, which rounding may miss.
    bounds = max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))
    low, high = (lowest + (1 - lowest) * bound for bound in bounds)
    return float(low), float(high)


def interval_of_mean(
    values: npt.ArrayLike,
    intervals: Sequence[tuple[float | None, float | None]],
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> tuple[float | None, float | None, str]:
    """Return the 95 % interval of a score's mean over seeds, over other examples and other seeds together.

    The variances of the two are added, each side of the mean by itself. The variance over examples is the mean of the
    single trainings', which is a little too large for the mean of several.

    Args:
        values: [s], one score per seed.
        intervals: s intervals over examples (`score_interval`), one per score; None and None where there is none.
        bounds: the lowest and the highest possible score.

    Returns:
        low and high, None without any source; and the sources: "over examples", "over examples and 3 seeds",
        "over 3 seeds" or "". Seeds that all give the same score say nothing of a spread.
    """
    scores = _checked(values)
    s, spread = len(scores), bool(np.ptp(scores) > 0)
    if any(bound is None for interval in intervals for bound in interval):
        return (*t_interval(scores), f"over {s} seeds") if spread else (None, None, "")
    low, high = np.asarray(intervals, float).mean(0).tolist()
    if not spread:
        return low, high, "over examples"
    mean, z = float(scores.mean()), stats.norm.ppf((1 + LEVEL) / 2)
    seeds = np.asarray(scores.var(ddof=1) / s)
    down, up = (
        Spread(np.asarray((side / z) ** 2), seeds, np.inf, s - 1).half_width() for side in (mean - low, high - mean)
    )
    return max(bounds[0], mean - down), min(bounds[1], mean + up), f"over examples and {s} seeds"


def t_interval(values: npt.ArrayLike) -> tuple[float, float]:
    """Return the 95 % t interval of a mean, such as that of a score over seeds.

    Args:
        values: [k], k at least 2.

    Raises:
        ValueError: fewer than two values, or one is not finite.
    """
    array = _checked(values)
    if len(array) < 2:
        raise ValueError("a t interval needs at least two values")
    half = stats.t.ppf((1 + LEVEL) / 2, len(array) - 1) * array.std(ddof=1) / np.sqrt(len(array))
    return float(array.mean() - half), float(array.mean() + half)


def paired_spread(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Floats, Spread]:
    """Return the difference of two systems on the same examples, and its variance over examples and over seeds.

    A side of one seed, or whose seeds all give the same, is a fixed system: nothing is said of other trainings of it.

    The variance over examples is that of the mean answers, less what the seeds' disagreement on single examples adds to
    it, since the variance between the seeds' scores holds that already. Half an example for each of the four outcomes
    is added, so that it is never nought and the test holds for few examples. Sides of equally many seeds pool their
    variance between seeds; else each side keeps its own, with the degrees of freedom of the smaller one.

    Args:
        a, b: [..., s, n] and [..., t, n], values at the same examples (`example_values`).

    Returns:
        mean(b) - mean(a), shrunk by n / (n + 2), [...]; and its variance.

    Raises:
        ValueError: the examples differ in number.
    """
    a, b = np.asarray(a), np.asarray(b)
    n = a.shape[-1]
    if b.shape[-1] != n:
        raise ValueError(f"paired values must be of the same examples, got the shapes {a.shape} and {b.shape}")
    differences = b.mean(-2) - a.mean(-2)
    total = differences.sum(-1)
    examples = ((differences**2).sum(-1) + ADDED / 2) / (n + ADDED) ** 2 - total**2 / (n + ADDED) ** 3
    seeds, df = np.zeros(total.shape), []
    for side in (a, b):
        s = side.shape[-2]
        if s > 1 and n > 1 and np.ptp(side, axis=-2).any():
            between = side.mean(-1).var(-1, ddof=1)
            disagreement = (side.var(-2, ddof=1).mean(-1) - between) / (n - 1)
            examples = examples - disagreement / s
            seeds = seeds + between / s
            df.append(s - 1)
    seeds_df = sum(df) if len(set(df)) == 1 else min(df, default=0)
    examples = np.maximum(examples, ADDED / 2 / (n + ADDED) ** 2)
    return total / (n + ADDED), Spread(examples, seeds, max(1, n - 1), seeds_df)


def holm(p_values: npt.ArrayLike) -> Floats:
    """Return p-values adjusted for being several (Holm 1979): below 0.05 they hold at 0.05 for all of them together.

    Args:
        p_values: [m], in any order; there may be none.

    Returns:
        [m], in the same order, at most 1.

    Raises:
        ValueError: a value is not from 0 to 1.
    """
    values = np.asarray(p_values, float)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"expected p-values from 0 to 1 in one row, got {values.tolist()}")
    order = np.argsort(values, kind="stable")
    adjusted = np.empty_like(values)
    steps = values[order] * (len(values) - np.arange(len(values)))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def as_counts(values: npt.ArrayLike) -> Floats:
    """Return values [..., n] as counts [..., n, 2] of which `mean_score` is the score."""
    array = np.asarray(values, float)
    return np.stack([array, np.ones_like(array)], -1)


def mean_score(sums: Floats) -> Floats:
    """Return the mean, from the sums of `as_counts`."""
    return sums[..., 0] / sums[..., 1]


def _checked(values: npt.ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"expected at least one value in one row, got the shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("a value is not finite")
    return array
