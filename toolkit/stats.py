"""Intervals, paired tests and their correction: pure functions over arrays, repeatable by their seed.

Three sources of chance are kept apart. `t_interval` speaks of other seeds, the bootstrap of other test examples, and
the paired functions of two systems on the same examples, which is far sharper than comparing two intervals.

A score that is no mean of examples, such as F1, is given as counts that examples add to, float [n, k], or [s, n, k] for
s seeds, and a function from their sums [..., k] to the score [...] (`toolkit.metrics`). Resampling then draws sums. The
score of several seeds is the mean of their scores, on the same resampled examples.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

LEVEL = 0.95
RESAMPLES = 10_000
_CELLS = 4_000_000  # values of a block of resamples: 32 MB
_FEW = 256  # distinct rows up to which a resample is drawn as counts of rows

Floats = npt.NDArray[np.float64]
Statistic = Callable[..., Floats]
Score = Callable[[Floats], Floats]


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
    if statistic is np.mean:
        return bootstrap_score(as_counts(values), mean_score, seed)
    blocks = (statistic(values[rows], axis=1) for rows in _resamples(len(values), 1, np.random.default_rng(seed)))
    return _percentiles(np.concatenate(list(blocks)))


def bootstrap_score(counts: npt.ArrayLike, score: Score, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval over examples of a score of counts, averaged over seeds.

    Args:
        counts: [n, k] or [s, n, k], what each example adds.
        score: from sums [..., k] to scores [...].
        seed: of the 10,000 resamples.

    Raises:
        ValueError: there is no example, or a count is not finite.
    """
    return _percentiles(_resampled_scores([_seeds(counts)], score, seed)[0])


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


def seed_interval(values: npt.ArrayLike) -> tuple[float, float] | None:
    """Return the `t_interval` of a score over seeds, None where the seeds tell nothing of a spread.

    That is so of one seed, and where all gave the same score: a training that uses no random numbers would seem exact.

    Args:
        values: [k].
    """
    return t_interval(values) if np.ptp(values) > 0 else None


def interval_of_mean(
    values: npt.ArrayLike, intervals: Sequence[tuple[float | None, float | None]]
) -> tuple[float | None, float | None, bool]:
    """Return the interval of a score's mean over seeds: over other seeds or over other examples, the wider of the two.

    Either alone can be far too narrow: seeds that hardly differ say nothing of other examples, nor do these of seeds.

    Args:
        values: [k], a score a seed.
        intervals: k intervals over examples, one a score; None and None where there is none.

    Returns:
        low and high, the means over seeds where the interval is that over examples, and whether it is that over seeds.
    """
    over_seeds = seed_interval(values)
    if any(bound is None for interval in intervals for bound in interval):
        return (*over_seeds, True) if over_seeds else (None, None, False)
    low, high = np.asarray(intervals, float).mean(0).tolist()
    if over_seeds and over_seeds[1] - over_seeds[0] > high - low:
        return (*over_seeds, True)
    return low, high, False


def mcnemar_exact(a_correct: npt.ArrayLike, b_correct: npt.ArrayLike) -> float:
    """Return the two-sided p-value of McNemar's exact test (McNemar 1947, binomial form).

    Args:
        a_correct: bool [n], whether the first system is right at each example.
        b_correct: bool [n], the second at the same examples.

    Raises:
        ValueError: the lengths differ, or there is no example.
    """
    _same_shape(a_correct, b_correct)
    a, b = _checked(a_correct).astype(bool), _checked(b_correct).astype(bool)
    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    return float(stats.binomtest(only_b, only_a + only_b).pvalue) if only_a + only_b else 1.0


def randomisation_test(
    a: npt.ArrayLike, b: npt.ArrayLike, score: Score, seed: int = 0, resamples: int = RESAMPLES
) -> float:
    """Return the two-sided p-value of the paired randomisation test (Fisher 1935; Noreen 1989; of F1: Yeh 2000).

    Under the hypothesis that the systems are exchangeable, each example's counts are as likely to have come from the
    other one. With right and wrong answers this is McNemar's test by sampling; it also takes counts averaged over
    seeds. The smallest p-value that it can give is 1 / (resamples + 1).

    Args:
        a, b: [n, k], counts at the same examples.
        score: from sums [..., k] to scores [...].
        seed: of the random exchanges.
        resamples: how many there are.

    Raises:
        ValueError: the shapes differ, or there is no example, or a count is not finite.
    """
    _same_shape(a, b)
    (a,), (b,) = _seeds(a), _seeds(b)
    sum_a, sum_b = a.sum(0), b.sum(0)
    observed = abs(float(score(sum_b) - score(sum_a)))
    differing = (a != b).any(1)
    if not differing.any():
        return 1.0
    change, sizes = (b - a)[differing], None
    distinct, counts = np.unique(change, axis=0, return_counts=True)
    if len(distinct) <= _FEW:
        change, sizes = distinct, counts
    rng, extreme = np.random.default_rng(seed), 0
    for size in _blocks(len(change) + a.shape[1], resamples):
        # Of the examples with one difference, a binomial number is exchanged.
        shape = (size, len(change))
        exchanged = rng.integers(0, 2, shape, np.uint8) if sizes is None else rng.binomial(sizes, 0.5, shape)
        moved = exchanged.astype(float) @ change
        extreme += int((np.abs(score(sum_b - moved) - score(sum_a + moved)) >= observed - 1e-9).sum())
    return (extreme + 1) / (resamples + 1)


def paired_bootstrap(a: npt.ArrayLike, b: npt.ArrayLike, seed: int = 0) -> tuple[float, float, float]:
    """Return mean(b) - mean(a) and its 95 % interval, from resampling the examples that both systems answered.

    Args:
        a, b: [n], values at the same examples; 0 and 1, or correctness averaged over seeds.
        seed: of the 10,000 resamples.

    Returns:
        difference (above 0 where b's mean is higher), low, high.

    Raises:
        ValueError: the lengths differ, or there is no example, or a value is not finite.
    """
    _same_shape(a, b)
    return paired_bootstrap_score(as_counts(_checked(a)), as_counts(_checked(b)), mean_score, seed)


def paired_bootstrap_score(
    a: npt.ArrayLike, b: npt.ArrayLike, score: Score, seed: int = 0
) -> tuple[float, float, float]:
    """Return score(b) - score(a), each averaged over its seeds, and the difference's 95 % interval.

    Args:
        a, b: [n, k] or [s, n, k], counts at the same examples; the numbers of seeds may differ.
        score: from sums [..., k] to scores [...].
        seed: of the 10,000 resamples, which draw the same examples for both systems and all seeds.

    Returns:
        difference (above 0 where b's score is higher), low, high.

    Raises:
        ValueError: the examples differ in number, or there is none, or a count is not finite.
    """
    a, b = _seeds(a), _seeds(b)
    _same_shape(a[0], b[0])
    of_a, of_b = _resampled_scores([a, b], score, seed)
    return float(score(b.sum(1)).mean() - score(a.sum(1)).mean()), *_percentiles(of_b - of_a)


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


def _seeds(counts: npt.ArrayLike) -> Floats:
    """Return checked counts as [s, n, k]."""
    array = np.asarray(counts, dtype=np.float64)
    if array.ndim not in (2, 3) or not array.size:
        raise ValueError(f"expected counts of at least one example, [n, k] or [s, n, k], got the shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("a count is not finite")
    return array[None] if array.ndim == 2 else array


def _same_shape(a: npt.ArrayLike, b: npt.ArrayLike) -> None:
    if np.shape(a) != np.shape(b):
        raise ValueError(f"paired values must be of the same examples, got the shapes {np.shape(a)} and {np.shape(b)}")


def _resampled_scores(systems: list[Floats], score: Score, seed: int) -> list[Floats]:
    """Return the score [RESAMPLES] of each system, averaged over its seeds, on the same resampled examples."""
    rng = np.random.default_rng(seed)
    examples = np.concatenate([seeds.swapaxes(0, 1).reshape(seeds.shape[1], -1) for seeds in systems], 1)
    borders = np.cumsum([seeds.shape[0] * seeds.shape[2] for seeds in systems])[:-1]
    found: list[list[Floats]] = [[] for _ in systems]
    for sums in _resampled_sums(examples, rng):
        for scores, part, seeds in zip(found, np.split(sums, borders, 1), systems, strict=True):
            scores.append(score(part.reshape(len(part), seeds.shape[0], seeds.shape[2])).mean(1))
    return [np.concatenate(scores) for scores in found]


def _resampled_sums(examples: Floats, rng: np.random.Generator) -> Iterator[Floats]:
    """Yield blocks of RESAMPLES sums over n rows that are drawn from n rows with replacement."""
    n, width = examples.shape
    distinct, counts = np.unique(examples, axis=0, return_counts=True)
    if len(distinct) <= _FEW:
        # Drawing n examples with replacement draws multinomial counts of the rows that they have.
        for size in _blocks(len(distinct) + width, RESAMPLES):
            yield rng.multinomial(n, counts / n, size) @ distinct
        return
    for rows in _resamples(n, width, rng):
        places = (rows + n * np.arange(len(rows))[:, None]).ravel()
        yield np.bincount(places, minlength=rows.size).reshape(len(rows), n).astype(float) @ examples


def _resamples(n: int, width: int, rng: np.random.Generator) -> Iterator[npt.NDArray[np.int64]]:
    for size in _blocks(n + width, RESAMPLES):
        yield rng.integers(0, n, (size, n))


def _blocks(width: int, total: int) -> Iterator[int]:
    """Yield how many resamples of a width to hold at a time."""
    block = max(1, _CELLS // width)
    for start in range(0, total, block):
        yield min(block, total - start)


def _percentiles(estimates: Floats) -> tuple[float, float]:
    low, high = np.quantile(estimates, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
