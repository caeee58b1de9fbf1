"""How often the paired test calls equal systems different, and how often it finds three points: by simulation.

Examples have a difficulty that all trainings share, one that the trainings of a system share, and one of each training,
so that two trainings of one system disagree on about a sixth of the examples, two of different systems on a fifth. The
accuracies of a system's trainings deviate by 0, 1 or 2 points around the same expectation.
"""

import functools

import numpy as np
import pytest
from scipy import special

from toolkit import stats
from toolkit.stats import paired_spread

SHARED, OF_SYSTEM, OF_TRAINING = 0.55, 0.20, 0.25  # of the variance of a difficulty
TRIALS = {200: 6_000, 804: 3_000, 1821: 2_000}  # by the number of examples
BLOCK = 100
CELLS = [(1, 0.0)] + [(seeds, deviation) for seeds in (2, 3, 5) for deviation in (0.0, 0.01, 0.02)]
GAP = 0.03  # of the trials that measure the power
Cell = tuple[int, float]


@functools.cache
def rates(n: int, trials: int) -> dict[Cell, tuple[float, float, float]]:
    """Return by seeds per side and their deviation in how many percent of trials the test says better or worse at 0.05.

    Returns:
        of equal systems; of equal systems by the rule before, which averaged answers over the seeds and looked at the
        examples alone; of systems that differ by three points.
    """
    rng = np.random.default_rng(n)
    found: dict[Cell, list[list[bool]]] = {cell: [[], [], []] for cell in CELLS}
    most = max(seeds for seeds, _ in CELLS)
    for _ in range(trials // BLOCK):
        shared = _normal(rng, SHARED, 1, BLOCK, 1, n)
        difficulty = shared + _normal(rng, OF_SYSTEM, 2, BLOCK, 1, n) + _normal(rng, OF_TRAINING, 2, BLOCK, most, n)
        level = rng.standard_normal((2, BLOCK, most, 1))
        for seeds, deviation in CELLS:
            a, b, better = (
                np.less(
                    difficulty[side, :, :seeds],
                    special.ndtri(0.8 + gap + deviation * level[side, :, :seeds]).astype("f4"),
                ).astype("f4")
                for side, gap in ((0, 0), (1, 0), (1, GAP))
            )
            averaged = [side.mean(1, keepdims=True, dtype=np.float32) for side in (a, b)]
            for kept, sides in zip(found[seeds, deviation], ((a, b), averaged, (a, better)), strict=True):
                difference, spread = paired_spread(*sides)
                kept.extend(spread.p_value(difference) < 0.05)
    return {cell: tuple(100 * float(np.mean(kept)) for kept in of_cell) for cell, of_cell in found.items()}


def _normal(rng: np.random.Generator, share: float, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, np.float32) * np.float32(share**0.5)


@pytest.mark.parametrize("n", TRIALS)
@pytest.mark.parametrize(("seeds", "deviation"), CELLS)
def test_equal_systems_are_called_different_in_3_to_7_percent(n: int, seeds: int, deviation: float) -> None:
    assert 3 <= rates(n, TRIALS[n])[seeds, deviation][0] <= 7


@pytest.mark.parametrize("n", TRIALS)
def test_the_rule_before_fails_the_same_simulation(n: int) -> None:
    assert all(rates(n, TRIALS[n])[seeds, 0.02][1] > 7 for seeds in (2, 3, 5))


@pytest.mark.parametrize(
    ("n", "seeds", "deviation", "least"), [(200, 3, 0.0, 15), (804, 3, 0.01, 30), (1821, 5, 0.01, 75)]
)
def test_a_true_difference_of_three_points_is_found(n: int, seeds: int, deviation: float, least: float) -> None:
    assert rates(n, TRIALS[n])[seeds, deviation][2] > least


def test_without_seeds_it_is_the_t_test_and_small_samples_claim_nothing() -> None:
    difference, spread = paired_spread(np.zeros((1, 4)), np.ones((1, 4)))
    assert spread.seeds_df == 0 and spread.p_value(difference) > 0.05
    assert stats.Spread(np.array(1.0), np.array(0.0), 9, 0).half_width() == pytest.approx(2.262157)
