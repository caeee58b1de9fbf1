"""Two systems on the same examples: which test, how seeds count, and what the sentence may claim."""

import time

import numpy as np
import pytest

from toolkit.metrics import METRICS
from toolkit.paired import Paired, compare_paired, corrected, paired_p_value
from toolkit.stats import mcnemar_exact

ACCURACY = METRICS["accuracy"]


def systems(both: int, only_a: int, only_b: int, neither: int) -> tuple[list[str], list[str], list[str]]:
    """Return gold, a, b with so many examples of each outcome."""
    sizes = (both, only_a, only_b, neither)
    sides = (np.repeat([x, y], 2)[order] for x, y, order in (("y", "n", [0, 1, 2, 3]), ("y", "n", [0, 2, 1, 3])))
    a, b = (np.repeat(side, sizes).tolist() for side in sides)
    return ["y"] * sum(sizes), a, b


def test_one_seed_a_side_is_exact_mcnemar() -> None:
    gold, a, b = systems(500, 20, 70, 100)
    paired = compare_paired(ACCURACY, gold, a, b)
    assert paired.p_value == mcnemar_exact(np.array(a) == "y", np.array(b) == "y")
    assert paired.difference == pytest.approx(50 / 690)
    assert (paired.n, paired.seeds, paired.test) == (690, (1, 1), "exact McNemar test")


def test_repeating_a_seed_does_not_make_a_comparison_sharper() -> None:
    gold, a, b = systems(500, 30, 48, 100)
    one, three = compare_paired(ACCURACY, gold, a, b), compare_paired(ACCURACY, gold, [a, a, a], [b, b, b])
    assert three.p_value == pytest.approx(one.p_value, abs=0.01)
    assert (three.low, three.high) == pytest.approx((one.low, one.high), abs=0.003)


def test_tags_of_one_sentence_are_no_independent_answers() -> None:
    gold = ["A\tB\tA", "B", "A\tA"] * 40
    a = ["A\tA\tB", "A", "A\tA"] * 40
    paired = compare_paired(ACCURACY, gold, a, gold)
    assert paired.test == "paired randomisation test"
    assert paired.difference == pytest.approx(3 / 6)
    assert paired.n == 120


def test_p_value_alone_is_that_of_the_comparison() -> None:
    gold, a, b = systems(500, 30, 52, 100)
    for name in ("accuracy", "matthews", "macro_f1"):
        for sides in ((a, b), ([a, b], [b, b])):
            paired = compare_paired(METRICS[name], gold, *sides)
            assert paired_p_value(METRICS[name], gold, *sides) == (paired.p_value, paired.test)


def test_a_sentence_names_the_better_system_in_either_order() -> None:
    gold, a, b = systems(500, 20, 70, 100)
    expected = "learned is better than none by 7.2 points of accuracy (difference"
    assert (
        compare_paired(ACCURACY, gold, a, b).sentence("none", "learned").startswith(f"{expected} +7.2, 95% interval +")
    )
    assert compare_paired(ACCURACY, gold, b, a).sentence("learned", "none").startswith(f"{expected} -7.2")


def test_a_sentence_does_not_claim_what_chance_explains() -> None:
    sentence = compare_paired(ACCURACY, *systems(500, 20, 22, 100)).sentence("none", "learned")
    assert sentence.startswith("No clear difference between none and learned (+0.3 points of accuracy for learned")
    assert "exact McNemar test" in sentence


def test_correction_can_take_a_difference_back_and_says_so() -> None:
    one = Paired("accuracy", 0.02, 0.001, 0.04, 0.03, 500, (1, 1), "exact McNemar test")
    alone, *several = corrected([one]) + corrected([one, one, one])
    assert alone == one and one.significant
    assert [(pair.p_holm, pair.comparisons, pair.significant) for pair in several] == [
        (pytest.approx(0.09), 3, False)
    ] * 3
    assert "p = 0.030, with Holm's correction over 3 comparisons p = 0.090" in several[0].sentence("a", "b")
    assert several[0].sentence("a", "b").startswith("No clear difference")


def test_other_numbers_of_examples_are_refused() -> None:
    with pytest.raises(ValueError, match="same examples"):
        compare_paired(ACCURACY, ["y"] * 3, ["y"] * 3, ["y"] * 2)


def test_two_thousand_examples_of_five_seeds_take_no_noticeable_time() -> None:
    rng = np.random.default_rng(0)
    a, b = (np.where(rng.random((5, 2000)) < share, "y", "n") for share in (0.8, 0.82))
    begin = time.process_time()
    compare_paired(ACCURACY, ["y"] * 2000, a, b)
    assert time.process_time() - begin < 1.0
