"""Scores and predictions that are not what they should be, and options of `evaluate` that choose them."""

import json
import re

import pandas as pd
import pytest
from stores import predicted_run

from toolkit.runs import notes, schema

GOLD = ["yes", "no"] * 20
FRACTIONS = (
    "0",
    "-0.1",
    "1.01",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "half",
    "",
    ",",
    "0.5,",
    "0.5,0.5",
    "0.5;1",
    "0x1",
    "50%",
)
METRICS = ("f1", "", "Accuracy", "macro-f1", "span_f1", "mcc", "accuracy,matthews", "±", "nan", "perplexity")
WRONG = ("NaN", "Infinity", "-Infinity", "1e308", "-1", "0.5", "100.0", "1.00001")
COUNTS = (0, 1, 2, 39, 41)


def rewrite(folder, old, new) -> None:
    path = folder / schema.RESULTS
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def two_runs(store, metric="accuracy") -> list:
    near = ["no"] * 5 + GOLD[5:]
    return [
        predicted_run(store, name, answers, GOLD, metric, evaluate__mix=mix)
        for name, answers, mix in (("a", near, "none"), ("b", GOLD, "top"))
    ]


@pytest.mark.parametrize("fraction", FRACTIONS)
def test_a_bad_train_fraction_is_refused(toolkit, fraction) -> None:
    toolkit("evaluate", "--task", "sst2", "--model", "m", "--train-fraction", fraction).refused("train fraction")


@pytest.mark.parametrize("metric", METRICS)
def test_an_unknown_metric_of_own_data_is_refused_with_the_known_ones(toolkit, tmp_path, metric) -> None:
    (tmp_path / "d.csv").write_text("text,label\na,x\nb,y\nc,x\nd,y\n")
    said = toolkit("evaluate", "--task", "csv", "--data", tmp_path / "d.csv", "--model", "m", "--metric", metric)
    said.refused("no metric", repr(metric))


@pytest.mark.parametrize("task", ["sst2", "trec", "sst2,trec", "cola"])
def test_a_metric_of_a_published_task_is_refused(toolkit, task) -> None:
    toolkit("evaluate", "--task", task, "--model", "m", "--metric", "matthews").refused("--metric", task)


@pytest.mark.parametrize("metric", ["accuracy", "matthews", "macro_f1"])
@pytest.mark.parametrize("value", WRONG)
def test_a_score_that_predictions_do_not_give_is_compared_nowhere(toolkit, tmp_path, metric, value) -> None:
    a, _ = two_runs(tmp_path / "runs", metric)
    said = json.loads((a / schema.RESULTS).read_text())["metrics"][0]["value"]
    rewrite(a, f'"value": {json.dumps(said)}', f'"value": {value}')
    toolkit("compare", "a-s1", "b-s1").refused("evaluate it again")
    table = toolkit("runs", "table")
    table.worked()
    scores = table.out.split("Not in the table")[0]
    assert not re.search(r"\b(nan|inf)\b.*±|±.*\b(nan|inf)\b", scores.lower()) and "p_value" not in table.out


@pytest.mark.parametrize("n", COUNTS)
def test_predictions_of_other_examples_are_refused_with_both_numbers(toolkit, tmp_path, n) -> None:
    predicted_run(tmp_path / "runs", "a", GOLD, GOLD)
    b = predicted_run(tmp_path / "runs", "b", GOLD, GOLD, evaluate__mix="top")
    frame = pd.read_parquet(b / schema.PREDICTIONS)
    pd.concat([frame, frame.tail(1).assign(example_id="new")])[:n].to_parquet(b / schema.PREDICTIONS)
    toolkit("compare", "a-s1", "b-s1").refused()


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("right", [True, False])
def test_very_few_examples_claim_nothing_and_have_no_interval_of_width_nought(toolkit, tmp_path, n, right) -> None:
    gold = ["yes"] * n
    predicted_run(tmp_path / "runs", "a", ["no"] * n, gold)
    predicted_run(tmp_path / "runs", "b", gold if right else ["no"] * n, gold, evaluate__mix="top")
    said = toolkit("compare", "a-s1", "b-s1", "--json")
    said.worked("No clear difference")
    document = json.loads(said.out)
    assert document["high"] - document["low"] > 0.3


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize(
    "command", [("runs", "list"), ("runs", "show", "a-s1"), ("runs", "table"), ("compare", "a-s1", "b-s1")]
)
def test_an_old_interval_of_width_nought_is_not_shown(toolkit, tmp_path, value, command) -> None:
    for name, mix in (("a", "none"), ("b", "top")):
        folder = predicted_run(tmp_path / "runs", name, ["yes"] if value else ["no"], ["yes"], evaluate__mix=mix)
        document = json.loads((folder / schema.RESULTS).read_text())
        document["metrics"][0] |= {"low": value, "high": value}
        (folder / schema.RESULTS).write_text(json.dumps(document))
    said = toolkit(*command)
    said.worked("39.7")
    assert "± 0.0" not in said.out and "±0.0" not in said.out


def test_an_archived_run_does_not_win_over_a_listed_one_of_its_name(toolkit, tmp_path) -> None:
    listed = predicted_run(tmp_path / "runs", "a", GOLD, GOLD)
    moved = listed.rename(listed.with_name("20200101T000000-evaluate-a-s1"))
    archived = predicted_run(tmp_path / "runs", "a", ["no"] * 40, GOLD)
    notes.archive(archived)
    predicted_run(tmp_path / "runs", "b", GOLD, GOLD, evaluate__mix="top")
    said = toolkit("compare", "a-s1", "b-s1", "--json")
    said.worked()
    assert json.loads(said.out)["runs_a"] == [moved.name]
    toolkit("compare", archived.name, "b-s1", "--json").worked(archived.name)
