"""The table of scores: what stands in which cell, what is marked, what is never mixed, and how it is written."""

import csv
import io
import json
import re
import time
from pathlib import Path

import numpy as np
import pytest
from stores import evaluate_run, predicted_run, pretrain_run, settings_with

from toolkit.errors import UsageError
from toolkit.metrics import METRICS
from toolkit.paired import compare_paired
from toolkit.runs import notes, schema
from toolkit.runs.describe_table import latex_escaped, table_document, table_text
from toolkit.runs.reader import load_run, read_predictions
from toolkit.runs.table import (
    BEST,
    EMPTY,
    EQUAL,
    NOT_RUN,
    UNTESTED,
    WORSE,
    Cell,
    ScoreTable,
    runs_for_table,
    score_table,
)
from toolkit.runs.writer import RunWriter
from toolkit.stats import holm, t_interval

GOLD = ["yes", "no"] * 150
MODEL = "0123456789abcdef"


def answers(share: float, seed: int = 1, gold: list[str] = GOLD) -> list[str]:
    """Return predictions that are right in about a share of the examples; equal seeds err on the same ones."""
    draws = np.random.default_rng(seed).random(len(gold))
    return [label if draw < share else "other" for label, draw in zip(gold, draws, strict=True)]


def table_of(store: Path, **choice: list[str]) -> ScoreTable:
    return score_table(runs_for_table(store, **choice))


def cell(table: ScoreTable, mix: str, title: str) -> Cell:
    (row,) = [number for number, row in enumerate(table.rows) if row.mix == mix]
    (column,) = [number for number, column in enumerate(table.columns) if column.title == title]
    return table.cells[row][column]


def test_a_cell_is_the_mean_over_seeds_with_the_interval_over_both(tmp_path: Path) -> None:
    for seed, share in ((1, 0.7), (2, 0.8), (3, 0.75)):
        predicted_run(tmp_path, "a", answers(share, seed), GOLD, seed=seed)
    scores = [load_run(folder).summary.metrics[0]["value"] for folder in sorted(tmp_path.iterdir())]
    found = cell(table_of(tmp_path), "learned", "sst2")
    assert found.value == pytest.approx(np.mean(scores))
    low, high = t_interval(scores)
    assert (
        found.low is not None
        and found.high is not None
        and 0.8 * (high - low) < found.high - found.low < high - low + 0.04
    )
    assert (found.seeds, found.interval, len(found.runs)) == (3, "over examples and 3 seeds", 3)


def test_one_seed_keeps_its_interval_over_examples(tmp_path: Path) -> None:
    predicted_run(tmp_path, "a", answers(0.7), GOLD)
    found = cell(table_of(tmp_path), "learned", "sst2")
    assert found.high is not None and found.low is not None
    assert found.high - found.low == pytest.approx(0.04)
    assert (found.interval, found.mark, found.remark) == ("over examples", "", "")


def test_marks_are_the_paired_tests_against_the_best_corrected_over_the_table(tmp_path: Path) -> None:
    shares = {"none": 0.55, "top": 0.77, "average": 0.74, "learned": 0.8}
    for task in ("sst2", "trec"):
        for number, (mix, share) in enumerate(shares.items()):
            predicted_run(tmp_path, f"{task}-{mix}", answers(share, number), GOLD, task=task, evaluate__mix=mix)
    table = table_of(tmp_path)
    raw = [
        compare_paired(METRICS["accuracy"], GOLD, answers(0.8, 3), answers(share, number)).p_value
        for _ in range(2)
        for number, share in enumerate((0.55, 0.77, 0.74))
    ]
    adjusted = holm(raw)
    assert table.comparisons == 6
    for task in ("sst2", "trec"):
        assert cell(table, "learned", task).mark == BEST
        for number, mix in enumerate(("none", "top", "average")):
            found = cell(table, mix, task)
            assert (found.p_value, found.p_holm) == pytest.approx((raw[number], adjusted[number]))
            assert found.mark == (WORSE if adjusted[number] < 0.05 else EQUAL)
    assert {cell(table, mix, "sst2").mark for mix in shares} == {BEST, EQUAL, WORSE}


def test_the_correction_is_what_makes_the_difference(tmp_path: Path) -> None:
    base = ["yes"] * 200
    near = ["no"] * 6 + base[6:]
    for task in ("a", "b", "c", "d"):
        predicted_run(tmp_path, f"{task}-none", near, base, task=task, evaluate__mix="none")
        predicted_run(tmp_path, f"{task}-top", base, base, task=task, evaluate__mix="top")
    found = cell(table_of(tmp_path), "none", "a")
    p = compare_paired(METRICS["accuracy"], base, base, near).p_value
    assert p < 0.05 and (found.p_value, found.p_holm, found.mark) == (pytest.approx(p), pytest.approx(4 * p), EQUAL)
    alone = cell(table_of(tmp_path, tasks=["a"]), "none", "a")
    assert (alone.p_holm, alone.mark) == (pytest.approx(p), WORSE)


def test_the_lowest_is_best_where_lower_is_better(tmp_path: Path) -> None:
    for mix, score in (("none", 0.3), ("top", 0.2), ("learned", 0.25)):
        kind = {"metric": "brier", "score": score, "higher_is_better": False}
        predicted_run(tmp_path, mix, GOLD, GOLD, evaluate__mix=mix, **kind)
    table = table_of(tmp_path)
    assert cell(table, "top", "sst2").mark == BEST
    assert cell(table, "none", "sst2").mark == UNTESTED
    assert "brier cannot be had from predictions" in cell(table, "none", "sst2").remark
    assert "lower is better" in table_text(table)


def test_missing_combinations_are_empty_with_their_reason(tmp_path: Path) -> None:
    predicted_run(tmp_path, "sst2-none", answers(0.6), GOLD, evaluate__mix="none")
    predicted_run(tmp_path, "trec-learned", answers(0.7), GOLD, task="trec")
    with pytest.raises(ZeroDivisionError), start(tmp_path, "trec-none", "trec", "none"):
        raise ZeroDivisionError("the loss is not finite")
    table = table_of(tmp_path)
    assert (cell(table, "learned", "sst2").mark, cell(table, "learned", "sst2").remark) == (EMPTY, NOT_RUN)
    assert cell(table, "none", "trec").remark == "seed 1 failed: ZeroDivisionError: the loss is not finite"
    text = table_text(table)
    assert "[1] seed 1 failed: ZeroDivisionError" in text and "[2] not run" in text


def start(store: Path, name: str, task: str, mix: str, seed: int = 1) -> RunWriter:
    settings = settings_with(evaluate__mix=mix)
    extra = {"task": task, "model": "runs/wiki-small/model"}
    return RunWriter.start(store, "evaluate", f"{name}-s{seed}", settings, seed, MODEL, "d" * 16, extra)


def test_a_configuration_that_only_failed_has_its_row(tmp_path: Path) -> None:
    predicted_run(tmp_path, "sst2-learned", answers(0.7), GOLD)
    with pytest.raises(KeyboardInterrupt), start(tmp_path, "cola-top", "cola", "top"):
        raise KeyboardInterrupt
    table = table_of(tmp_path)
    assert cell(table, "top", "cola").remark == "seed 1 stopped"
    assert cell(table, "top", "sst2").remark == NOT_RUN
    assert {column.title for column in table.columns} == {"sst2", "cola"}


def test_a_seed_that_failed_beside_others_is_told_until_it_has_been_run_again(tmp_path: Path) -> None:
    for seed in (1, 2):
        predicted_run(tmp_path, "sst2-top", answers(0.7, seed), GOLD, seed=seed, evaluate__mix="top")
    with pytest.raises(KeyboardInterrupt), start(tmp_path, "sst2-top", "sst2", "top", seed=3):
        raise KeyboardInterrupt
    found = cell(table_of(tmp_path), "top", "sst2")
    assert (found.seeds, found.remark) == (2, "seed 3 stopped")
    predicted_run(tmp_path, "sst2-top-again", answers(0.7, 3), GOLD, seed=3, evaluate__mix="top")
    found = cell(table_of(tmp_path), "top", "sst2")
    assert (found.seeds, found.remark) == (3, "")


def test_the_order_of_the_examples_in_a_file_changes_nothing(tmp_path: Path) -> None:
    for number, (mix, share) in enumerate((("none", 0.6), ("learned", 0.8))):
        folder = predicted_run(tmp_path, mix, answers(share, number), GOLD, evaluate__mix=mix)
    straight = table_of(tmp_path)
    path = folder / schema.PREDICTIONS
    read_predictions(folder).sample(frac=1, random_state=1).to_parquet(path)
    assert table_of(tmp_path) == straight
    assert len(straight.columns) == 1


def test_the_last_finished_run_of_a_seed_counts(tmp_path: Path) -> None:
    first = predicted_run(tmp_path, "sst2", answers(0.5), GOLD)
    first.rename(first.with_name("20200101T000000-evaluate-sst2-s1"))
    last = predicted_run(tmp_path, "sst2", answers(0.9), GOLD)
    assert cell(table_of(tmp_path), "learned", "sst2").runs == (last.name,)


def test_other_data_and_other_examples_stand_in_columns_apart(tmp_path: Path) -> None:
    short = GOLD[:200]
    predicted_run(tmp_path, "one", answers(0.7), GOLD, seed=1)
    predicted_run(tmp_path, "two", answers(0.8), GOLD, seed=2, data="e" * 16)
    predicted_run(tmp_path, "three", answers(0.8, gold=short), short, seed=3)
    predicted_run(tmp_path, "four", answers(0.8), GOLD[::-1], seed=4)
    table = table_of(tmp_path)
    assert [found.seeds for row in table.cells for found in row] == [1, 1, 1, 1]
    titles = [column.title for column in table.columns]
    assert len(set(titles)) == 4 and any("200 examples" in title for title in titles)
    assert any("data eeeeeeee" in title for title in titles)
    (note,) = table.notes
    assert note == "sst2 stands in 4 columns: its runs differ in data, examples, split or metric and are never mixed."


def test_a_setting_that_matters_makes_a_row_of_its_own(tmp_path: Path) -> None:
    predicted_run(tmp_path, "wide", answers(0.7), GOLD, evaluate__hidden=256)
    predicted_run(tmp_path, "narrow", answers(0.7), GOLD, evaluate__hidden=64)
    predicted_run(tmp_path, "shown", answers(0.7), GOLD, evaluate__hidden=64, senses__neighbours=3, seed=2)
    table = table_of(tmp_path)
    assert sorted((row.settings, cells[0].seeds) for row, cells in zip(table.rows, table.cells, strict=True)) == [
        ("hidden=256", 1),
        ("hidden=64", 2),
    ]


def test_runs_of_before_a_setting_existed_stand_with_its_default(tmp_path: Path) -> None:
    old = predicted_run(tmp_path, "old", answers(0.7), GOLD)
    path = old / schema.CONFIG
    path.write_text(re.sub(r"^dropout = .*\n", "", path.read_text(), flags=re.MULTILINE))
    predicted_run(tmp_path, "new", answers(0.7, 2), GOLD, seed=2)
    table = table_of(tmp_path)
    assert len(table.rows) == 1 and table.cells[0][0].seeds == 2


def test_two_models_of_one_name_are_told_apart(tmp_path: Path) -> None:
    predicted_run(tmp_path, "one", answers(0.7), GOLD, model="a" * 16)
    predicted_run(tmp_path, "two", answers(0.7), GOLD, model="b" * 16)
    assert {row.model for row in table_of(tmp_path).rows} == {"wiki-small aaaaaaaa", "wiki-small bbbbbbbb"}


def test_damaged_runs_are_told_and_cost_no_more_than_themselves(tmp_path: Path) -> None:
    predicted_run(tmp_path, "none", answers(0.6), GOLD, evaluate__mix="none")
    lost = predicted_run(tmp_path, "top", answers(0.7), GOLD, evaluate__mix="top")
    (lost / schema.PREDICTIONS).unlink()
    predicted_run(tmp_path, "average", answers(0.7), GOLD, evaluate__mix="average", score=0.65)
    predicted_run(tmp_path, "learned", answers(0.9), GOLD)
    unreadable = predicted_run(tmp_path, "gone", GOLD, GOLD)
    (unreadable / schema.MANIFEST).write_text("{")
    table = table_of(tmp_path)
    assert cell(table, "learned", "sst2").mark == BEST and cell(table, "none", "sst2").mark == WORSE
    assert cell(table, "top", "sst2").mark == UNTESTED
    assert "keeps no predictions" in cell(table, "top", "sst2").remark
    assert "says test accuracy 65.0000, its predictions give" in cell(table, "average", "sst2").remark
    assert len(table.columns) == 1
    assert any(unreadable.name in note for note in table.notes)


def test_a_run_without_a_row_leaves_the_others(tmp_path: Path) -> None:
    pretrain_run(tmp_path, steps=5)
    predicted_run(tmp_path, "a", answers(0.7), GOLD)
    archived = predicted_run(tmp_path, "b", answers(0.7), GOLD, evaluate__mix="top")
    notes.archive(archived, archived=True)
    assert [row.mix for row in table_of(tmp_path).rows] == ["learned"]
    assert [row.mix for row in table_of(tmp_path, run_ids=[archived.name]).rows] == ["top"]


def test_rows_and_columns_come_in_the_order_asked_for(tmp_path: Path) -> None:
    ids = [
        predicted_run(tmp_path, f"{task}-{mix}", answers(0.7), GOLD, task=task, evaluate__mix=mix).name
        for task in ("zeta", "alpha")
        for mix in ("none", "layer:0", "learned")
    ]
    table = table_of(tmp_path, run_ids=ids)
    assert [row.mix for row in table.rows] == ["none", "layer:0", "learned"]
    assert [column.title for column in table.columns] == ["zeta", "alpha"]
    assert [column.title for column in table_of(tmp_path, tasks=["alpha", "zeta"]).columns] == ["alpha", "zeta"]


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    predicted_run(tmp_path, "a", answers(0.7), GOLD)
    with pytest.raises(UsageError, match=r"no evaluate run of task 'sst'.*did you mean 'sst2'"):
        runs_for_table(tmp_path, tasks=["sst"])
    with pytest.raises(UsageError, match="no run 'nothing'"):
        runs_for_table(tmp_path, run_ids=["nothing"])
    with pytest.raises(UsageError, match=r"no table format 'markdwn'.*did you mean 'markdown'"):
        table_text(table_of(tmp_path), "markdwn")


AWKWARD = r"fixed:0.5,50% & x_k #1 | {a}~^\ [b]"


@pytest.fixture
def awkward(tmp_path: Path) -> ScoreTable:
    for task in ("ag_news", "x|y"):
        predicted_run(tmp_path, f"{task}-a", answers(0.8), GOLD, task=task, evaluate__mix=AWKWARD)
    predicted_run(tmp_path, "ag_news-b", answers(0.79), GOLD, task="ag_news", evaluate__mix="top")
    return table_of(tmp_path)


def test_latex_is_escaped_and_balanced(awkward: ScoreTable) -> None:
    text = table_text(awkward, "latex")
    body = text[text.index(r"\midrule") : text.index(r"\bottomrule")]
    rows = [line for line in body.splitlines() if line.endswith(r" \\")]
    assert len(rows) == 2
    assert all(len(re.findall(r"(?<!\\)&", row)) == 4 for row in rows)
    assert r"\begin{tabular}{lllrr}" in text
    plain = re.sub(r"\\[\\&%$#_{}]", "", body)
    assert not re.search(r"[%#_^~±≈–|]", plain)
    assert plain.count("{") == plain.count("}") and plain.count("$") % 2 == 0
    assert r"\textbf{" in body and r"$\approx$" in body
    assert latex_escaped("a_b~^\\") == r"a\_b\textasciitilde{}\textasciicircum{}\textbackslash{}"


def test_markdown_keeps_its_columns(awkward: ScoreTable) -> None:
    lines = [line for line in table_text(awkward, "markdown").splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {6}
    assert "**" in lines[2] and "≈" in lines[3] and r"x\_k" in lines[2]


def test_csv_has_a_line_a_cell_with_everything(awkward: ScoreTable) -> None:
    rows = list(csv.DictReader(io.StringIO(table_text(awkward, "csv"))))
    assert len(rows) == 4
    assert rows[0]["mix"] == AWKWARD
    assert {row["mark"] for row in rows} == {BEST, EQUAL, EMPTY, ""}
    assert [row["remark"] for row in rows if row["mark"] == EMPTY] == [NOT_RUN]
    first = awkward.cells[0][0]
    assert float(rows[0]["value"]) == first.value and rows[0]["runs"] == " ".join(first.runs)


def test_every_layout_marks_the_best_and_what_may_be_as_good(tmp_path: Path) -> None:
    for number, (mix, share) in enumerate((("none", 0.5), ("top", 0.79), ("learned", 0.8))):
        predicted_run(tmp_path, mix, answers(share, number), GOLD, evaluate__mix=mix)
    table = table_of(tmp_path)
    shown = {
        row.mix: f"{100 * (found[0].value or 0):.1f} ±2.0 (1)"
        for row, found in zip(table.rows, table.cells, strict=True)
    }
    text, learned = table_text(table), shown["learned"]
    assert f"{learned} *" in text and f"{shown['top']} ≈" in text and re.search(rf"{re.escape(shown['none'])}\n", text)
    assert "Holm's correction over the 2 comparisons of the table" in text
    assert f"**{learned}**" in table_text(table, "markdown")
    assert rf"\textbf{{{latex_escaped(learned)}}}" in table_text(table, "latex")
    document = json.loads(json.dumps(table_document(table)))
    assert document["correction"] == "Holm over 2 comparisons"
    marks = {row["mix"]: found[0]["mark"] for row, found in zip(document["rows"], document["cells"], strict=True)}
    assert marks == {"none": WORSE, "top": EQUAL, "learned": BEST}


@pytest.mark.parametrize("layout", ["terminal", "csv", "markdown", "latex"])
def test_an_empty_store_gives_a_table_that_says_so(tmp_path: Path, layout: str) -> None:
    text = table_text(table_of(tmp_path / "nothing"), layout)
    assert text.startswith("task,") if layout == "csv" else "No evaluate run" in text


def test_fifty_runs_of_two_thousand_examples_take_a_second_or_two(tmp_path: Path) -> None:
    for mix in ("none", "layer:0", "layer:1", "top", "learned"):
        for task in ("sst2", "trec"):
            for seed in range(5):
                accuracy = 0.7 + 0.02 * len(mix)
                evaluate_run(tmp_path, f"{task}-{mix}", seed, accuracy, 2000, mix=mix, task=task)
    begin = time.process_time()
    table = table_of(tmp_path)
    assert time.process_time() - begin < 2.5
    assert table.comparisons == 8 and all(found.seeds == 5 for row in table.cells for found in row)
