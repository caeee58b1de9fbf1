"""Intervals and the paired test, against scipy, statistics and published examples."""

import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from toolkit import stats


def accuracy_interval(correct: list[int]) -> tuple[float, float]:
    return stats.score_interval(stats.as_counts(correct), stats.mean_score)


@pytest.mark.parametrize(("right", "n"), [(0, 1), (1, 1), (0, 804), (804, 804), (1, 20), (536, 804)])
def test_the_interval_of_an_accuracy_is_that_of_wilson(right: int, n: int):
    theirs = scipy_stats.binomtest(right, n).proportion_ci(method="wilson")
    assert accuracy_interval([1] * right + [0] * (n - right)) == pytest.approx((theirs.low, theirs.high))


def test_one_right_answer_is_not_certain():
    low, high = accuracy_interval([1])
    assert low < 0.3 and high == 1


def test_t_interval_agrees_with_the_formula_and_scipy():
    values = [0.81, 0.83, 0.80, 0.84, 0.82]
    half = 2.7764451 * statistics.stdev(values) / 5**0.5  # t of 4 degrees of freedom
    mean = statistics.mean(values)
    assert stats.t_interval(values) == pytest.approx((mean - half, mean + half))
    theirs = scipy_stats.ttest_1samp(values, 0).confidence_interval()
    assert stats.t_interval(values) == pytest.approx((theirs.low, theirs.high))


def test_t_interval_of_one_value_is_refused():
    with pytest.raises(ValueError, match="two values"):
        stats.t_interval([0.8])


def _systems(both: int, only_a: int, only_b: int, neither: int) -> tuple[np.ndarray, np.ndarray]:
    a = np.repeat([1, 1, 0, 0], [both, only_a, only_b, neither])
    b = np.repeat([1, 0, 1, 0], [both, only_a, only_b, neither])
    return a[None], b[None]


@pytest.mark.parametrize("counts", [(500, 30, 52, 100), (700, 40, 64, 0), (80, 14, 6, 20), (300, 60, 61, 9)])
def test_one_training_each_is_mcnemar_with_the_mid_p_value(counts: tuple[int, int, int, int]):
    difference, spread = stats.paired_spread(*_systems(*counts))
    _, a, b, _ = counts
    exact = scipy_stats.binomtest(a, a + b)
    mid = exact.pvalue - scipy_stats.binom.pmf(min(a, b), a + b, 0.5)
    assert float(spread.p_value(difference)) == pytest.approx(mid, abs=0.012)


def test_the_interval_of_a_difference_leaves_nought_out_exactly_where_p_is_below_5_percent():
    for only_b in range(20, 60):
        difference, spread = stats.paired_spread(*_systems(300, 25, only_b, 40))
        assert (abs(difference) > spread.half_width()) == (spread.p_value(difference) < 0.05)


@pytest.mark.parametrize("n", [1, 5, 800])
def test_systems_that_answer_alike_may_still_differ_elsewhere(n: int):
    difference, spread = stats.paired_spread(np.ones((1, n)), np.ones((1, n)))
    assert difference == 0 and spread.p_value(difference) == 1
    assert spread.half_width() > 1.5 / (n + 2)


def test_seeds_that_deviate_widen_the_interval_and_equal_ones_do_not():
    a, b = _systems(500, 20, 60, 200)
    rng = np.random.default_rng(0)
    flipped = np.concatenate([np.where(rng.random(a.shape) < share, 1 - b, b) for share in (0.0, 0.05, 0.1)])
    _, one = stats.paired_spread(a, b)
    _, three = stats.paired_spread(np.repeat(a, 3, 0), np.repeat(b, 3, 0))
    _, deviating = stats.paired_spread(a, flipped)
    assert three.half_width() == one.half_width()
    assert deviating.seeds_df == 2 and deviating.half_width() > 2 * one.half_width()


def test_sides_of_unequal_numbers_of_seeds_do_not_lend_each_other_certainty():
    rng = np.random.default_rng(1)
    a, b = (rng.random((s, 400)) < 0.8 for s in (5, 2))
    _, spread = stats.paired_spread(a.astype(float), b.astype(float))
    assert spread.seeds_df == 1


def f1(sums: np.ndarray) -> np.ndarray:
    return 2 * sums[..., 0] / (sums[..., 1] + sums[..., 2])


def _span_counts(n: int, seed: int, skill: float = 0.7) -> np.ndarray:
    rng = np.random.default_rng(seed)
    gold = np.random.default_rng(99).poisson(2.0, n)
    hits = rng.binomial(gold, skill)
    return np.stack([hits, gold, hits + rng.poisson(0.4, n)], -1).astype(float)


def test_example_values_of_an_accuracy_are_its_answers():
    correct = np.random.default_rng(0).random((2, 50)) < 0.7
    assert stats.example_values(stats.as_counts(correct), stats.mean_score) == pytest.approx(correct.astype(float))


def test_the_interval_of_f1_agrees_with_the_bootstrap_of_scipy():
    counts = _span_counts(400, 5)
    theirs = scipy_stats.bootstrap(
        tuple(counts.T),
        lambda hits, gold, found, axis: 2 * hits.sum(axis) / (gold.sum(axis) + found.sum(axis)),
        paired=True,
        method="percentile",
        n_resamples=3_000,
        rng=1,
    )
    assert stats.score_interval(counts, f1) == pytest.approx(tuple(theirs.confidence_interval), abs=0.004)


def test_the_interval_of_a_difference_of_f1_agrees_with_the_bootstrap_of_scipy():
    a, b = _span_counts(200, 1), _span_counts(200, 2, 0.8)
    theirs = scipy_stats.bootstrap(
        (*a.T, *b.T),
        lambda *columns, axis: (
            f1(np.stack([c.sum(axis) for c in columns[3:]], -1)) - f1(np.stack([c.sum(axis) for c in columns[:3]], -1))
        ),
        paired=True,
        method="percentile",
        n_resamples=5_000,
        rng=1,
    )
    difference, spread = stats.paired_spread(*(stats.example_values(side[None], f1) for side in (a, b)))
    half = spread.half_width()
    assert (difference - half, difference + half) == pytest.approx(tuple(theirs.confidence_interval), abs=0.012)


def test_holm_of_published_examples():
    # Wikipedia, "Holm-Bonferroni method": at 0.05 the first and the last are rejected.
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    # R, p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm")
    assert stats.holm([0.01, 0.02, 0.03, 0.04, 0.05]) == pytest.approx([0.05, 0.08, 0.09, 0.09, 0.09])
    assert stats.holm([0.8, 0.9]).tolist() == [1.0, 1.0]
    assert stats.holm([]).tolist() == []


def test_holm_refuses_what_is_no_p_value():
    for values in ([1.2], [-0.1], [float("nan")]):
        with pytest.raises(ValueError, match="p-values"):
            stats.holm(values)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_lies_between_no_correction_and_bonferroni(values):
    adjusted = stats.holm(values)
    assert (adjusted >= np.array(values)).all()
    assert (adjusted <= np.minimum(1, np.array(values) * len(values)) + 1e-12).all()
    order = np.argsort(values, kind="stable")
    assert (np.diff(adjusted[order]) >= 0).all()


def test_other_numbers_of_examples_are_refused():
    with pytest.raises(ValueError, match=r"same examples.*\(1, 3\).*\(1, 2\)"):
        stats.paired_spread([[1, 0, 1]], [[1, 0]])


def test_nothing_and_not_a_number_are_refused():
    with pytest.raises(ValueError, match="at least one"):
        stats.score_interval(np.empty((0, 3)), f1)
    with pytest.raises(ValueError, match="finite"):
        accuracy_interval([0.0, float("nan")])
    with pytest.raises(ValueError, match="finite"):
        stats.interval_of_mean([0.5, float("nan")], [(0.4, 0.6)] * 2)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_an_interval_holds_the_score_and_is_never_of_width_nought(correct):
    low, high = accuracy_interval(correct)
    assert 0 <= low <= np.mean(correct) + 1e-9 and np.mean(correct) - 1e-9 <= high <= 1
    assert high - low > 0.02


def test_the_interval_of_a_mean_counts_examples_and_seeds():
    examples = [(0.6, 0.8), (0.64, 0.84)]
    low, high, sources = stats.interval_of_mean([0.70, 0.74], examples)
    assert sources == "over examples and 2 seeds" and low < 0.62 and high > 0.82
    assert stats.interval_of_mean([0.7, 0.7], [(0.6, 0.8)] * 2) == (0.6, 0.8, "over examples")
    assert stats.interval_of_mean([0.7], [(0.6, 0.8)]) == (0.6, 0.8, "over examples")
    assert stats.interval_of_mean([0.7, 0.8], [(None, None)] * 2) == (*stats.t_interval([0.7, 0.8]), "over 2 seeds")
    assert stats.interval_of_mean([0.7], [(None, None)]) == (None, None, "")
    assert stats.interval_of_mean([0.9, 1.0], [(0.8, 1.0)] * 2, (0.0, 1.0))[1] == 1.0
