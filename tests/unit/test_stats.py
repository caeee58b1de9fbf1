"""Intervals and paired tests, against scipy, statistics and published examples."""

import itertools
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from toolkit import stats


def test_bootstrap_of_a_mean_agrees_with_scipy():
    values = np.random.default_rng(3).random(300)
    theirs = scipy_stats.bootstrap((values,), np.mean, n_resamples=10_000, method="percentile", rng=0)
    assert stats.bootstrap_interval(values) == pytest.approx(tuple(theirs.confidence_interval), abs=0.002)


def test_few_distinct_values_resampled_by_counts_agree_with_resampled_rows():
    correct = np.random.default_rng(1).random(500) < 0.8
    by_rows = stats.bootstrap_interval(correct, lambda rows, axis: rows.mean(axis))
    assert stats.bootstrap_interval(correct) == pytest.approx(by_rows, abs=0.003)


def test_bootstrap_takes_another_statistic():
    values = np.random.default_rng(2).lognormal(size=400)
    theirs = scipy_stats.bootstrap((values,), np.median, n_resamples=10_000, method="percentile", rng=0)
    assert stats.bootstrap_interval(values, np.median) == pytest.approx(tuple(theirs.confidence_interval), abs=0.03)


def test_a_seed_repeats_and_another_does_not():
    values = np.random.default_rng(0).random(50)
    assert stats.bootstrap_interval(values, seed=5) == stats.bootstrap_interval(values, seed=5)
    assert stats.bootstrap_interval(values, seed=5) != stats.bootstrap_interval(values, seed=6)


def test_t_interval_agrees_with_the_formula_and_scipy():
    values = [0.81, 0.83, 0.80, 0.84, 0.82]
    half = 2.7764451 * statistics.stdev(values) / 5**0.5  # t of 4 degrees of freedom
    mean = statistics.mean(values)
    assert stats.t_interval(values) == pytest.approx((mean - half, mean + half))
    theirs = scipy_stats.ttest_1samp(values, 0).confidence_interval()
    assert stats.t_interval(values) == pytest.approx((theirs.low, theirs.high))


def test_seeds_that_all_give_the_same_tell_of_no_spread():
    assert stats.seed_interval([0.7, 0.7, 0.7]) is None and stats.seed_interval([0.7]) is None
    assert stats.seed_interval([0.7, 0.8]) == stats.t_interval([0.7, 0.8])


def test_t_interval_of_one_value_is_refused():
    with pytest.raises(ValueError, match="two values"):
        stats.t_interval([0.8])


def _systems(both: int, only_a: int, only_b: int, neither: int) -> tuple[np.ndarray, np.ndarray]:
    a = np.repeat([1, 1, 0, 0], [both, only_a, only_b, neither])
    b = np.repeat([1, 0, 1, 0], [both, only_a, only_b, neither])
    return a, b


def test_mcnemar_by_hand():
    # 2 against 8 discordant pairs: 2 * (C(10,0) + C(10,1) + C(10,2)) / 2**10 = 112 / 1024.
    assert stats.mcnemar_exact(*_systems(50, 2, 8, 40)) == pytest.approx(112 / 1024)


def test_mcnemar_of_equal_systems_is_one():
    assert stats.mcnemar_exact(*_systems(5, 0, 0, 5)) == 1.0


def test_paired_bootstrap_is_positive_where_b_is_better():
    difference, low, high = stats.paired_bootstrap(*_systems(500, 20, 70, 100))
    assert difference == pytest.approx(50 / 690)
    assert 0 < low < difference < high


def test_paired_bootstrap_agrees_with_scipy():
    rng = np.random.default_rng(4)
    a, b = rng.random(200), rng.random(200) + 0.1
    theirs = scipy_stats.bootstrap(
        (a, b), lambda x, y, axis: (y - x).mean(axis), paired=True, method="percentile", n_resamples=10_000, rng=1
    )
    _, low, high = stats.paired_bootstrap(a, b)
    assert (low, high) == pytest.approx(tuple(theirs.confidence_interval), abs=0.005)


def test_exchanging_right_and_wrong_is_mcnemar():
    a, b = map(stats.as_counts, _systems(300, 30, 52, 60))
    assert stats.randomisation_test(a, b, stats.mean_score) == pytest.approx(
        stats.mcnemar_exact(a[:, 0], b[:, 0]), abs=0.01
    )


def test_randomisation_agrees_with_all_exchanges():
    difference = np.array([0.5, -1.0, 0.25, 1.0, 0.75, 0.5, 0.25, -0.5, 1.0])
    sums = [abs(np.dot(signs, difference)) for signs in itertools.product([-1, 1], repeat=len(difference))]
    exact = np.mean(np.array(sums) >= abs(difference.sum()) - 1e-12)
    a, b = stats.as_counts(np.zeros(9)), stats.as_counts(difference)
    assert stats.randomisation_test(a, b, stats.mean_score) == pytest.approx(exact, abs=0.015)


def test_randomisation_of_a_mean_agrees_with_scipy():
    rng = np.random.default_rng(8)
    a, b = rng.random(400), rng.random(400) + 0.03  # 400 distinct differences: no grouping
    theirs = scipy_stats.permutation_test(
        (a, b), lambda x, y, axis: (y - x).mean(axis), permutation_type="samples", n_resamples=9_999, rng=1, batch=1000
    )
    ours = stats.randomisation_test(stats.as_counts(a), stats.as_counts(b), stats.mean_score)
    assert ours == pytest.approx(theirs.pvalue, abs=0.02)


def f1(sums: np.ndarray) -> np.ndarray:
    return 2 * sums[..., 0] / (sums[..., 1] + sums[..., 2])


def _span_counts(n: int, seed: int, skill: float = 0.7) -> np.ndarray:
    rng = np.random.default_rng(seed)
    gold = np.random.default_rng(99).poisson(2.0, n)
    hits = rng.binomial(gold, skill)
    return np.stack([hits, gold, hits + rng.poisson(0.4, n)], -1).astype(float)


def test_randomisation_of_f1_agrees_with_all_exchanges():
    a, b = _span_counts(11, 1), _span_counts(11, 2, 0.95)
    kept = [np.array(choice)[:, None] for choice in itertools.product([0, 1], repeat=11)]
    differences = np.array([f1((b * k + a * (1 - k)).sum(0)) - f1((a * k + b * (1 - k)).sum(0)) for k in kept])
    exact = np.mean(np.abs(differences) >= abs(f1(b.sum(0)) - f1(a.sum(0))) - 1e-12)
    assert stats.randomisation_test(a, b, f1) == pytest.approx(exact, abs=0.015)


def test_more_exchanges_give_smaller_p_values():
    a, b = stats.as_counts(np.zeros(100)), stats.as_counts(np.ones(100))
    assert stats.randomisation_test(a, b, stats.mean_score) == 1 / 10_001
    assert stats.randomisation_test(a, b, stats.mean_score, resamples=50_000) == 1 / 50_001


@pytest.mark.parametrize("n", [150, 3000])  # few distinct rows, and more of them than are drawn as counts
def test_bootstrap_of_f1_agrees_with_scipy(n: int):
    counts = _span_counts(n, 5)
    if n > 1000:
        counts += np.random.default_rng(1).random(counts.shape) * 1e-9
    theirs = scipy_stats.bootstrap(
        tuple(counts.T),
        lambda hits, gold, found, axis: 2 * hits.sum(axis) / (gold.sum(axis) + found.sum(axis)),
        paired=True,
        method="percentile",
        n_resamples=3_000,
        batch=200,
        rng=1,
    )
    ours = stats.bootstrap_score(counts, f1)
    assert ours == pytest.approx(tuple(theirs.confidence_interval), abs=0.1 / n**0.5)


def test_paired_bootstrap_of_f1_agrees_with_scipy():
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
    difference, low, high = stats.paired_bootstrap_score(a, b, f1)
    assert difference == pytest.approx(f1(b.sum(0)) - f1(a.sum(0)))
    assert (low, high) == pytest.approx(tuple(theirs.confidence_interval), abs=0.008)


def test_a_score_over_seeds_resamples_the_same_examples_for_all():
    one = _span_counts(200, 1)
    assert stats.bootstrap_score([one, one, one], f1) == pytest.approx(stats.bootstrap_score(one, f1), abs=1e-12)
    several, single = np.stack([one, _span_counts(200, 2)]), _span_counts(200, 3)
    difference, low, high = stats.paired_bootstrap_score(several, single, f1)
    assert difference == pytest.approx(f1(single.sum(0)) - np.mean([f1(counts.sum(0)) for counts in several]))
    assert low < difference < high


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


@pytest.mark.parametrize("function", [stats.mcnemar_exact, stats.paired_bootstrap])
def test_unequal_lengths_are_refused(function):
    with pytest.raises(ValueError, match=r"same examples.*\(3,\).*\(2,\)"):
        function([1, 0, 1], [1, 0])


def test_nothing_and_not_a_number_are_refused():
    with pytest.raises(ValueError, match="at least one"):
        stats.bootstrap_interval([])
    with pytest.raises(ValueError, match="at least one"):
        stats.bootstrap_score(np.empty((0, 3)), f1)
    with pytest.raises(ValueError, match="finite"):
        stats.paired_bootstrap([0.0, float("nan")], [1.0, 1.0])


@settings(deadline=None, max_examples=50)
@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_an_interval_holds_the_score(correct):
    low, high = stats.bootstrap_interval(correct)
    assert 0 <= low <= np.mean(correct) + 1e-9
    assert np.mean(correct) - 1e-9 <= high <= 1 + 1e-12


def test_the_interval_of_a_mean_is_the_wider_of_seeds_and_examples():
    examples = [(0.6, 0.8), (0.64, 0.84)]
    assert stats.interval_of_mean([0.70, 0.74], examples) == (*stats.t_interval([0.70, 0.74]), True)
    assert stats.interval_of_mean([0.7, 0.701], examples) == (pytest.approx(0.62), pytest.approx(0.82), False)
    assert stats.interval_of_mean([0.7, 0.7], examples) == (pytest.approx(0.62), pytest.approx(0.82), False)
    assert stats.interval_of_mean([0.7], [(0.6, 0.8)]) == (0.6, 0.8, False)
    assert stats.interval_of_mean([0.7, 0.8], [(None, None)] * 2) == (*stats.t_interval([0.7, 0.8]), True)
    assert stats.interval_of_mean([0.7], [(None, None)]) == (None, None, False)
