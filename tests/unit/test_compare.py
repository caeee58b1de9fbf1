"""Comparing runs: aligned by example, honest about what differs, and the words that say it."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import matthews_corrcoef
from stores import evaluate_run, full_store, predicted_run, pretrain_run

from toolkit.errors import DataError, FormatError, UsageError
from toolkit.runs import schema
from toolkit.runs.compare import BOTH, NEITHER, ONLY_A, ONLY_B, compare, compare_with, outcome_counts
from toolkit.runs.describe_comparison import (
    comparison_document,
    comparison_text,
    comparisons_document,
    comparisons_text,
)
from toolkit.runs.find import find_runs
from toolkit.runs.reader import read_predictions
from toolkit.stats import holm


def test_examples_are_aligned_by_id_not_by_place(tmp_path: Path) -> None:
    ids = [f"e{i}" for i in range(60)]
    evaluate_run(tmp_path, "a", accuracy=0.6, ids=ids)
    b = evaluate_run(tmp_path, "b", accuracy=0.8, ids=ids)
    straight = compare(tmp_path, "a-s1", "b-s1")
    path = b / schema.PREDICTIONS
    read_predictions(b).sample(frac=1, random_state=1).to_parquet(path)
    shuffled = compare(tmp_path, "a-s1", "b-s1")
    assert shuffled.paired == straight.paired
    assert shuffled.examples.equals(straight.examples)


def test_the_four_outcomes_are_counted_as_by_hand(tmp_path: Path) -> None:
    a, b = evaluate_run(tmp_path, "a", accuracy=0.6), evaluate_run(tmp_path, "b", accuracy=0.8)
    right = [(frame["predicted"] == frame["gold"]).to_numpy() for frame in map(read_predictions, (a, b))]
    found = compare(tmp_path, "a-s1", "b-s1")
    assert outcome_counts(found.examples) == {
        BOTH: (right[0] & right[1]).sum(),
        ONLY_A: (right[0] & ~right[1]).sum(),
        ONLY_B: (~right[0] & right[1]).sum(),
        NEITHER: (~right[0] & ~right[1]).sum(),
    }
    assert found.paired is not None
    assert np.isclose(found.paired.difference, right[1].mean() - right[0].mean())


def test_other_examples_are_refused_with_the_numbers(tmp_path: Path) -> None:
    evaluate_run(tmp_path, "a", n=60)
    evaluate_run(tmp_path, "b", n=50)
    with pytest.raises(DataError, match=r"60 test examples, .* 50, 50 of them the same"):
        compare(tmp_path, "a-s1", "b-s1")


def test_other_gold_labels_are_refused(tmp_path: Path) -> None:
    evaluate_run(tmp_path, "a", n=20)
    b = evaluate_run(tmp_path, "b", n=20)
    frame = read_predictions(b)
    frame.loc[0, "gold"] = "neutral"
    frame.to_parquet(b / schema.PREDICTIONS)
    with pytest.raises(DataError, match="different gold labels for 1 of 20"):
        compare(tmp_path, "a-s1", "b-s1")


def test_other_tasks_and_kinds_are_refused(tmp_path: Path) -> None:
    evaluate_run(tmp_path, "a", n=20)
    evaluate_run(tmp_path, "b", n=20, task="trec")
    pretrain_run(tmp_path, "wiki", steps=5)
    with pytest.raises(DataError, match="only runs of one task"):
        compare(tmp_path, "a-s1", "b-s1")
    with pytest.raises(UsageError, match="nothing to compare"):
        compare(tmp_path, "a-s1", "wiki")


def test_an_unreadable_run_is_refused_with_its_problem(tmp_path: Path) -> None:
    evaluate_run(tmp_path, "a", n=20)
    (evaluate_run(tmp_path, "b", n=20) / schema.MANIFEST).write_text("{")
    with pytest.raises(FormatError, match=r"cannot be compared: run\.json"):
        compare(tmp_path, "a-s1", next(tmp_path.glob("*-b-s1")).name)


def test_pretrain_runs_compare_without_a_test(tmp_path: Path) -> None:
    pretrain_run(tmp_path, "one", steps=5)
    pretrain_run(tmp_path, "two", steps=5)
    found = compare(tmp_path, "one", "two")
    assert found.paired is None
    assert comparison_document(found)["p_value"] is None
    assert "No paired test" in comparison_text(found)


def test_groups_of_seeds_differ_in_the_setting_that_was_changed_and_in_nothing_else(tmp_path: Path) -> None:
    full_store(tmp_path)
    found = compare(tmp_path, "sst2-none", "sst2-learned")
    assert dict(found.settings) == {"evaluate.mix": ("none", "learned")}
    assert "sst2-learned is better than sst2-none" in found.sentence
    document = json.loads(json.dumps(comparison_document(found)))
    assert document["n"] == 872
    assert len(document["runs_a"]) == len(document["runs_b"]) == 3
    assert found.sentence in comparison_text(found)


GOLD = ["yes", "no"] * 150


def noisy(share: float, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [label if rng.random() < share else "yes" for label in GOLD]


def test_the_metric_of_the_run_is_compared_not_the_accuracy(tmp_path: Path) -> None:
    predicted_run(tmp_path, "a", noisy(0.4, 1), GOLD, "matthews")
    predicted_run(tmp_path, "b", noisy(0.8, 2), GOLD, "matthews")
    found = compare(tmp_path, "a-s1", "b-s1")
    expected = [matthews_corrcoef(GOLD, noisy(*of)) for of in ((0.4, 1), (0.8, 2))]
    assert found.paired is not None and found.metric == "matthews"
    assert found.paired.difference == pytest.approx(expected[1] - expected[0])
    assert "points of matthews" in found.sentence
    assert "test matthews (×100)" in comparison_text(found)


def test_spans_are_compared_sentence_by_sentence(tmp_path: Path) -> None:
    gold = ["B-PER\tI-PER\tO", "O\tB-LOC"] * 50
    predicted_run(tmp_path, "a", ["B-PER\tO\tO", "O\tB-LOC"] * 50, gold, "span_f1")
    predicted_run(tmp_path, "b", gold, gold, "span_f1")
    found = compare(tmp_path, "a-s1", "b-s1")
    assert found.paired is not None
    assert (found.paired.n, found.paired.difference) == (100, pytest.approx(0.5))
    assert outcome_counts(found.examples) == {BOTH: 50, ONLY_A: 0, ONLY_B: 50, NEITHER: 0}


def test_an_unknown_metric_is_shown_without_a_test(tmp_path: Path) -> None:
    for name, score in (("a", 0.61), ("b", 0.52)):
        predicted_run(tmp_path, name, GOLD, GOLD, "brier", score=score, higher_is_better=False)
    found = compare(tmp_path, "a-s1", "b-s1")
    assert found.paired is None
    assert found.sentence.startswith("No paired test: 'brier' cannot be had from predictions")
    assert "test brier, lower is better" in comparison_text(found)
    assert comparison_document(found)["difference"] is None


def test_runs_of_two_metrics_are_refused(tmp_path: Path) -> None:
    predicted_run(tmp_path, "a", GOLD, GOLD)
    predicted_run(tmp_path, "b", GOLD, GOLD, "matthews")
    with pytest.raises(DataError, match=r"a-s1 is scored by accuracy, .*b-s1 by matthews"):
        compare(tmp_path, "a-s1", "b-s1")


def test_a_run_whose_predictions_give_another_score_is_refused(tmp_path: Path) -> None:
    predicted_run(tmp_path, "a", GOLD, GOLD)
    predicted_run(tmp_path, "b", GOLD, GOLD, score=0.9)
    with pytest.raises(FormatError, match=r"b-s1 says test accuracy 90\.0000, its predictions give 100\.0000"):
        compare(tmp_path, "a-s1", "b-s1")


def test_several_comparisons_are_corrected_together(tmp_path: Path) -> None:
    for number, share in enumerate((0.5, 0.62, 0.64, 0.9)):
        predicted_run(tmp_path, f"r{number}", noisy(share, number), GOLD)
    baseline, *others = [find_runs(tmp_path, f"r{number}-s1") for number in range(4)]
    alone = [compare(tmp_path, "r0-s1", f"r{number}-s1").paired for number in (1, 2, 3)]
    together = compare_with(baseline, others)
    assert [c.paired.p_holm for c in together if c.paired] == holm([p.p_value for p in alone if p]).tolist()
    text = comparisons_text(together)
    assert all("with Holm's correction over 3 comparisons" in comparison.sentence for comparison in together)
    assert all(comparison.sentence in text for comparison in together)
    document = json.loads(json.dumps(comparisons_document(together)))
    assert [entry["comparisons"] for entry in document["comparisons"]] == [3, 3, 3]
    assert document["baseline"] == "r0-s1"


def test_one_comparison_needs_no_correction(tmp_path: Path) -> None:
    predicted_run(tmp_path, "a", noisy(0.5, 1), GOLD)
    predicted_run(tmp_path, "b", noisy(0.8, 2), GOLD)
    (alone,) = compare_with(find_runs(tmp_path, "a-s1"), [find_runs(tmp_path, "b-s1")])
    assert alone.paired == compare(tmp_path, "a-s1", "b-s1").paired
    assert "Holm" not in alone.sentence


def test_the_answer_of_several_seeds_is_that_of_most(tmp_path: Path) -> None:
    for seed, answers in enumerate((["b", "c", "a"], ["b", "a", "b"], ["a", "c", "c"])):
        predicted_run(tmp_path, "a", answers, ["a", "b", "c"], seed=seed)
    predicted_run(tmp_path, "b", ["a", "b", "c"], ["a", "b", "c"])
    found = compare(tmp_path, "a", "b-s1")
    assert found.examples["predicted_a"].tolist() == ["b", "c", "a"]
    assert found.examples["correct_a"].tolist() == pytest.approx([1 / 3, 0, 1 / 3])


def test_several_seeds_of_two_thousand_examples_compare_in_no_noticeable_time(tmp_path: Path) -> None:
    for mix in ("none", "learned"):
        for seed in range(3):
            evaluate_run(tmp_path, mix, seed, n=2000, mix=mix)
    begin = time.process_time()
    compare(tmp_path, "none", "learned")
    assert time.process_time() - begin < 1.0


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_score_that_is_no_number_is_refused(tmp_path: Path, score: float) -> None:
    predicted_run(tmp_path, "a", GOLD, GOLD)
    predicted_run(tmp_path, "b", GOLD, GOLD, score=0.5)
    path = next(tmp_path.glob("*-b-s1")) / schema.RESULTS
    path.write_text(path.read_text().replace('"value": 0.5', f'"value": {json.dumps(score)}'))
    with pytest.raises(FormatError, match=r"b-s1 has no test score \(results\.json .*is not finite"):
        compare(tmp_path, "a-s1", "b-s1")
