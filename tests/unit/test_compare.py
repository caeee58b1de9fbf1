"""Comparing runs: aligned by example, honest about what differs, and the words that say it."""

import json
from pathlib import Path

import numpy as np
import pytest
from stores import evaluate_run, full_store, pretrain_run

from toolkit.errors import DataError, FormatError, UsageError
from toolkit.runs import schema
from toolkit.runs.compare import BOTH, NEITHER, ONLY_A, ONLY_B, compare, outcome_counts
from toolkit.runs.describe_comparison import comparison_document, comparison_text
from toolkit.runs.reader import read_predictions


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
        compare(tmp_path, "a-s1", "evaluate-b-s1")


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
