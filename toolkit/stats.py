"""Intervals and paired tests for scores: pure functions over arrays, repeatable by their seed.

Three sources of chance are kept apart. `t_interval` speaks of other seeds, the bootstrap of other test examples, and
the paired functions of two systems on the same examples, which is far sharper than comparing two intervals.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

LEVEL = 0.95
RESAMPLES = 10_000
_CELLS = 4_000_000  # values of a block of resamples: 32 MB
_FEW = 256  # distinct values up to which a resample is drawn as counts of values

Statistic = Callable[..., npt.NDArray[np.float64]]


def bootstrap_interval(
    values_per_example: npt.ArrayLike, statistic: Statistic = np.mean, seed: int = 0
) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of a score over examples (Efron and Tibshirani 1993, ch. 13).

    Args:
        values_per_example: [n], for an accuracy 1 where the prediction is right.
        statistic: called with resamples [m, n] and `axis=1`, gives [m]; `np.mean` takes a faster way.
        seed: of the 10,000 resamples.

    Raises:
        ValueError: there is no value, or one is not finite.
    """
    values = _checked(values_per_example)
    rng = np.random.default_rng(seed)
    if statistic is np.mean:
        return _percentiles(_resampled_means(values, rng))
    blocks = (statistic(values[rows], axis=1) for rows in _resamples(len(values), rng))
    return _percentiles(np.concatenate(list(blocks)))


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


def mcnemar_exact(a_correct: npt.ArrayLike, b_correct: npt.ArrayLike) -> float:
    """Return the two-sided p-value of McNemar's exact test (McNemar 1947, binomial form).

    Args:
        a_correct: bool [n], whether the first system is right at each example.
        b_correct: bool [n], the second at the same examples.

    Raises:
        ValueError: the lengths differ, or there is no example.
    """
    a, b = (_checked(side).astype(bool) for side in _pair(a_correct, b_correct))
    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    return float(stats.binomtest(only_b, only_a + only_b).pvalue) if only_a + only_b else 1.0


def sign_flip_test(a: npt.ArrayLike, b: npt.ArrayLike, seed: int = 0) -> float:
    """Return the two-sided p-value of the paired randomisation test (Fisher 1935; Noreen 1989).

    Under the hypothesis that the systems are exchangeable, each example's difference is as likely to have either sign.
    With values 0 and 1 this is McNemar's test by sampling; it also takes correctness averaged over seeds.

    Args:
        a, b: [n], values at the same examples.
        seed: of the 10,000 random assignments of signs.

    Raises:
        ValueError: the lengths differ, or there is no example, or a value is not finite.
    """
    a, b = _pair(a, b)
    difference = _checked(b) - _checked(a)
    sizes, counts = np.unique(np.abs(difference[difference != 0]).round(12), return_counts=True)
    if not len(sizes):
        return 1.0
    rng = np.random.default_rng(seed)
    # Of the examples with one size of difference, a binomial number turns positive.
    sums = (2 * rng.binomial(counts, 0.5, (RESAMPLES, len(sizes))) - counts) @ sizes
    extreme = np.abs(sums) >= abs(difference.sum()) - 1e-9
    return float((extreme.sum() + 1) / (RESAMPLES + 1))


def paired_bootstrap(a: npt.ArrayLike, b: npt.ArrayLike, seed: int = 0) -> tuple[float, float, float]:
    """Return mean(b) - mean(a) and its 95 % interval, from resampling the examples that both systems answered.

    Args:
        a, b: [n], values at the same examples; 0 and 1, or correctness averaged over seeds.
        seed: of the 10,000 resamples.

    Returns:
        difference (above 0 where b is better), low, high.

    Raises:
        ValueError: the lengths differ, or there is no example, or a value is not finite.
    """
    a, b = _pair(a, b)
    difference = _checked(b) - _checked(a)
    return float(difference.mean()), *_percentiles(_resampled_means(difference, np.random.default_rng(seed)))


@dataclass(frozen=True)
class Paired:
    """A paired comparison; a positive difference says that b is better.

    Attributes:
        difference: mean(b) - mean(a), with `low` and `high` as its 95 % interval over examples.
        p_value: two-sided.
        n: examples.
        seeds: seeds averaged on each side, (a, b).
        test: what gave the p-value.
    """

    difference: float
    low: float
    high: float
    p_value: float
    n: int
    seeds: tuple[int, int]
    test: str

    def sentence(self, a: str, b: str) -> str:
        """Say in one sentence whether b is better than a; shares are told in points of a hundred."""
        points, low, high = (100 * value for value in (self.difference, self.low, self.high))
        figures = f"95% interval {low:+.1f} to {high:+.1f}, n = {self.n}, {_p(self.p_value)}, {self.test})."
        if self.p_value < 1 - LEVEL:
            better, worse = (b, a) if points > 0 else (a, b)
            return f"{better} is better than {worse} by {abs(points):.1f} points (difference {points:+.1f}, {figures}"
        return f"No clear difference between {a} and {b} ({points:+.1f} points for {b}, {figures}"


def compare_paired(a_correct: npt.ArrayLike, b_correct: npt.ArrayLike, seed: int = 0) -> Paired:
    """Compare two systems on the same examples.

    With one seed on each side the p-value is McNemar's, exact. With more, each example's correctness is averaged over
    the seeds of a side and the p-value comes from the randomisation test, of which McNemar's is the case of one seed:
    testing one seed of several would depend on which, and pooling them would count each example several times.
    Interval and p-value both speak of other test examples, for the average of these very seeds; `t_interval` speaks
    of other seeds.

    Args:
        a_correct, b_correct: bool [n] or [seeds, n], the columns in the same order of examples.
        seed: of the resamples.

    Raises:
        ValueError: the numbers of examples differ, or there is none.
    """
    a, b = np.atleast_2d(np.asarray(a_correct, float)), np.atleast_2d(np.asarray(b_correct, float))
    mean_a, mean_b = a.mean(0), b.mean(0)
    difference, low, high = paired_bootstrap(mean_a, mean_b, seed)
    if len(a) == len(b) == 1:
        p_value, test = mcnemar_exact(mean_a, mean_b), "exact McNemar test"
    else:
        p_value = sign_flip_test(mean_a, mean_b, seed)
        test = f"paired randomisation test over {max(len(a), len(b))} seeds"
    return Paired(difference, low, high, p_value, a.shape[1], (len(a), len(b)), test)


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def _checked(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"expected at least one value in one row, got the shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("a value is not finite")
    return array


def _pair(a: npt.ArrayLike, b: npt.ArrayLike) -> Sequence[npt.NDArray]:
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        raise ValueError(f"paired values must be of the same examples, got the shapes {a.shape} and {b.shape}")
    return a, b


def _resampled_means(values: npt.NDArray[np.float64], rng: np.random.Generator) -> npt.NDArray[np.float64]:
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) > _FEW:
        return np.concatenate([values[rows].mean(1) for rows in _resamples(len(values), rng)])
    # Drawing n examples with replacement draws multinomial counts of the values that they have.
    return rng.multinomial(len(values), counts / len(values), RESAMPLES) @ distinct / len(values)


def _resamples(n: int, rng: np.random.Generator) -> Iterator[npt.NDArray[np.int64]]:
    block = max(1, _CELLS // n)
    for start in range(0, RESAMPLES, block):
        yield rng.integers(0, n, (min(block, RESAMPLES - start), n))


def _percentiles(estimates: npt.NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.quantile(estimates, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
