"""Intervals and paired tests, against scipy, statistics and published examples."""

import itertools
import statistics
import time

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


def test_sign_flips_of_right_and_wrong_are_mcnemar():
    a, b = _systems(300, 30, 52, 60)
    assert stats.sign_flip_test(a, b) == pytest.approx(stats.mcnemar_exact(a, b), abs=0.01)


def test_sign_flips_agree_with_all_assignments():
    difference = np.array([0.5, -1.0, 0.25, 1.0, 0.75, 0.5, 0.25, -0.5, 1.0])
    sums = [abs(np.dot(signs, difference)) for signs in itertools.product([-1, 1], repeat=len(difference))]
    exact = np.mean(np.array(sums) >= abs(difference.sum()) - 1e-12)
    assert stats.sign_flip_test(np.zeros(9), difference) == pytest.approx(exact, abs=0.015)


def test_comparison_of_one_seed_is_exact_mcnemar():
    a, b = _systems(500, 20, 70, 100)
    paired = stats.compare_paired(a, b)
    assert paired.p_value == stats.mcnemar_exact(a, b)
    assert paired.n == 690
    assert paired.test == "exact McNemar test"


def test_repeating_a_seed_does_not_make_a_comparison_sharper():
    a, b = _systems(500, 30, 48, 100)
    one, three = stats.compare_paired(a, b), stats.compare_paired([a, a, a], [b, b, b])
    assert three.p_value == pytest.approx(one.p_value, abs=0.01)
    assert (three.low, three.high) == pytest.approx((one.low, one.high), abs=0.003)


def test_a_sentence_names_the_better_system_in_either_order():
    a, b = _systems(500, 20, 70, 100)
    assert (
        stats.compare_paired(a, b)
        .sentence("none", "learned")
        .startswith("learned is better than none by 7.2 points (difference +7.2, 95% interval +")
    )
    assert stats.compare_paired(b, a).sentence("learned", "none").startswith("learned is better than none by 7.2")


def test_a_sentence_does_not_claim_what_chance_explains():
    sentence = stats.compare_paired(*_systems(500, 20, 22, 100)).sentence("none", "learned")
    assert sentence.startswith("No clear difference between none and learned (+0.3 points for learned")
    assert "exact McNemar test" in sentence


@pytest.mark.parametrize("function", [stats.mcnemar_exact, stats.paired_bootstrap, stats.sign_flip_test])
def test_unequal_lengths_are_refused(function):
    with pytest.raises(ValueError, match=r"same examples.*\(3,\).*\(2,\)"):
        function([1, 0, 1], [1, 0])


def test_nothing_and_not_a_number_are_refused():
    with pytest.raises(ValueError, match="at least one"):
        stats.bootstrap_interval([])
    with pytest.raises(ValueError, match="finite"):
        stats.paired_bootstrap([0.0, float("nan")], [1.0, 1.0])


@settings(deadline=None, max_examples=50)
@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_an_interval_holds_the_score(correct):
    low, high = stats.bootstrap_interval(correct)
    assert 0 <= low <= np.mean(correct) + 1e-9
    assert np.mean(correct) - 1e-9 <= high <= 1 + 1e-12


def test_two_thousand_examples_take_no_noticeable_time():
    rng = np.random.default_rng(0)
    a, b = rng.random((3, 2000)) < 0.8, rng.random((3, 2000)) < 0.82
    begin = time.process_time()
    stats.compare_paired(a, b)
    assert time.process_time() - begin < 1.0
