"""Two systems on the same examples: which test, how seeds count, and what the sentence may claim."""

import time

import numpy as np
import pytest

from toolkit.metrics import METRICS
from toolkit.paired import Paired, compare_paired, corrected

ACCURACY = METRICS["accuracy"]


def systems(both: int, only_a: int, only_b: int, neither: int) -> tuple[list[str], list[str], list[str]]:
    """Return gold, a, b with so many examples of each outcome."""
    sizes = (both, only_a, only_b, neither)
    sides = (np.repeat([x, y], 2)[order] for x, y, order in (("y", "n", [0, 1, 2, 3]), ("y", "n", [0, 2, 1, 3])))
    a, b = (np.repeat(side, sizes).tolist() for side in sides)
    return ["y"] * sum(sizes), a, b


def test_one_seed_a_side_speaks_of_these_two_trainings_only() -> None:
    paired = compare_paired(ACCURACY, *systems(500, 20, 70, 100))
    assert paired.difference == pytest.approx(50 / 690)
    assert (paired.n, paired.seeds, paired.varied) == (690, (1, 1), (False, False))
    assert paired.sentence("a", "b").endswith("paired t test over examples; about these two trainings only).")


def test_several_seeds_are_counted_and_one_training_beside_them_is_named() -> None:
    gold, a, b = systems(500, 20, 70, 100)
    several = compare_paired(ACCURACY, gold, [a, b], [b, a])
    assert several.sentence("none", "learned").endswith("paired t test over examples and seeds).")
    mixed = compare_paired(ACCURACY, gold, [a], [b, a])
    assert mixed.sentence("none", "learned").endswith("and seeds; about this one training of none only).")
    equal = compare_paired(ACCURACY, gold, [a, a], [b, a])
    assert equal.sentence("none", "learned").endswith("and seeds; the seeds of none give the same).")


def test_repeating_a_seed_does_not_make_a_comparison_sharper() -> None:
    gold, a, b = systems(500, 30, 48, 100)
    one, three = compare_paired(ACCURACY, gold, a, b), compare_paired(ACCURACY, gold, [a, a, a], [b, b, b])
    assert three.p_value == pytest.approx(one.p_value, abs=0.01)
    assert (three.low, three.high) == pytest.approx((one.low, one.high), abs=0.003)


def test_tags_of_one_sentence_are_no_independent_answers() -> None:
    gold = ["A\tB\tA", "B", "A\tA"] * 40
    a = ["A\tA\tB", "A", "A\tA"] * 40
    paired = compare_paired(ACCURACY, gold, a, gold)
    assert paired.test == "paired t test over examples"
    assert paired.difference == pytest.approx(3 / 6)
    assert paired.n == 120


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
    assert "paired t test over examples" in sentence


def test_correction_can_take_a_difference_back_and_says_so() -> None:
    one = Paired("accuracy", 0.02, 0.001, 0.04, 0.03, 500, (1, 1), "paired t test over examples")
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
