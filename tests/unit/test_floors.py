"""Floors: what trivial methods reach, as runs of their own, and a bag of words beside a mix."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from unit.test_grid import SOURCE, TAGS, TOY, settings_for

from tasks.adapter.bag import Bag, TagBag, bag_values, majority, written_without_blanks
from tasks.adapter.describe import evaluation_text
from tasks.adapter.grid import run_grid
from tasks.registry import data_fingerprint
from tasks.task import Example
from toolkit.config import Evaluate
from toolkit.errors import UsageError
from toolkit.runs.reader import list_runs, load_run, read_predictions
from toolkit.runs.table import runs_for_table, score_table

SPLITS = TOY.load(None, Path())


def test_floors_are_runs_with_the_ids_of_the_other_runs_and_a_sentence_compares_with_the_bag(tmp_path):
    grid = run_grid([(TOY, SOURCE)], settings_for(tmp_path, seeds=1), tmp_path / "runs", floors=True)
    (document,) = grid.documents
    assert [row["mix"] for row in document["floors"]] == ["majority", "bag"]
    assert document["floors"][0]["test"] == 0.5 and document["floors"][1]["test"] == 1.0
    ids = [sorted(read_predictions(tmp_path / "runs" / run)["example_id"]) for run in grid.runs]
    assert len(ids) == 4 and all(one == ids[0] for one in ids)
    table = score_table(runs_for_table(tmp_path / "runs", grid.runs))
    text = evaluation_text(grid.documents, table)
    assert "What each representation adds to a bag of words:" in text
    assert [one["a"] for one in document["over_bag"]] == ["toy-bag-0.9-of-train-s1"] * 2
    assert {(row.mix, row.model) for row in table.rows} >= {("majority", "-"), ("bag", "-")}
    assert all(not row.settings for row in table.rows), "a floor depends on none of the settings of a head"


def test_a_floor_is_reused_whatever_the_model_head_and_rate(tmp_path):
    run_grid([(TOY, SOURCE)], settings_for(tmp_path, seeds=1), tmp_path / "runs", floors=True)
    other = replace(SOURCE, fingerprint="0" * 16, n_layers=3)
    settings = settings_for(tmp_path, seeds=1, hidden=4, learning_rate=0.5)
    assert run_grid([(TOY, other)], settings, tmp_path / "runs", floors=True).taken == 2


def test_without_floors_there_are_none(tmp_path):
    run_grid([(TOY, SOURCE)], settings_for(tmp_path, seeds=1, mix="top"), tmp_path / "runs")
    assert [run.name for run in list_runs(tmp_path / "runs")] == ["toy-top-linear-0.9-of-train-s1"]


def test_the_majority_is_that_of_train():
    train = [Example(str(n), ("w",), label) for n, label in enumerate(["positive"] * 2 + ["negative"])]
    assert majority(TOY, train).argmax() == TOY.labels.index("positive")


def test_tags_get_the_most_frequent_one_of_the_word_and_unknown_words_that_of_rare_ones():
    train = [Example("1", ("a", "a", "a", "b", "c"), tags=("X", "X", "Y", "Z", "Z"))]
    (found,) = TagBag(("X", "Y", "Z"), train).probabilities([Example("2", ("a", "b", "new"), tags=("X",) * 3)])
    assert found.argmax(-1).tolist() == [0, 2, 2]


def test_characters_take_the_place_of_words_where_there_are_no_blanks():
    chinese = [Example(str(n), tuple("服务很好" if n % 2 else "房间太小"), TOY.labels[n % 2]) for n in range(8)]
    assert written_without_blanks(chinese) and not written_without_blanks(SPLITS.train)
    joined = [replace(example, tokens=("".join(example.tokens),)) for example in chinese]
    bag = Bag(TOY.labels, chinese, Evaluate()).select(TOY, chinese)
    np.testing.assert_allclose(bag.decisions(joined), bag.decisions(chinese))


def test_the_values_of_training_examples_come_from_a_bag_that_has_not_seen_them():
    """With random labels a bag knows what it was trained on, and nothing of what it was not."""
    rng = np.random.default_rng(1)
    train = [Example(str(n), (f"w{n}",), TOY.labels[rng.integers(2)]) for n in range(200)]
    gold = np.array([example.label == TOY.labels[1] for example in train])
    inside = Bag(TOY.labels, train, Evaluate(), 64.0).decisions(train)[:, 0] > 0
    held_out = bag_values(TOY, train, SPLITS.dev, [SPLITS.test], Evaluate())[0][:, 0] > 0
    assert (inside == gold).all() and (held_out == gold).mean() < 0.7


@pytest.mark.parametrize("head", ["linear", "bilstm"])
def test_the_bag_beside_a_mix_of_noise_brings_what_the_bag_knows(tmp_path, head):
    settings = settings_for(tmp_path, mix="layer:0,bag+layer:0", seeds=1, head=head, epochs=8, hidden=4, x_k=False)
    noise, with_bag = run_grid([(TOY, SOURCE)], settings, tmp_path / "runs").documents[0]["rows"]
    assert noise["test"] < 0.8 < with_bag["test"]
    assert with_bag["representation"].endswith("bag")


@pytest.mark.parametrize(
    ("task", "mix", "message"),
    [
        (TOY, "bag", "unless --no-floors"),
        (TOY, "majority", "unless --no-floors"),
        (TOY, "bag+bag", "unless --no-floors"),
        (TOY, "bag+", "unknown mix"),
        (TOY, "bag+layer:9", "layers 0 to 2"),
        (TOY, "bag+fixed:1,2", "3 numbers"),
        (TAGS, "bag+top", "not a label a token"),
    ],
)
def test_what_is_no_mix_beside_a_bag_is_refused(tmp_path, task, mix, message):
    with pytest.raises(UsageError, match=message):
        run_grid([(task, SOURCE)], settings_for(tmp_path, mix=mix), tmp_path / "runs")


def test_a_changed_word_vector_file_of_the_same_name_is_another_experiment(tmp_path):
    path, store = tmp_path / "v.txt", tmp_path / "runs"
    settings = settings_for(tmp_path, mix="none", seeds=1, word_vectors=str(path))
    path.write_text("bank 1 0\nmoney 0 1\n")
    first = run_grid([(TOY, SOURCE)], settings, store)
    assert run_grid([(TOY, SOURCE)], settings, store).taken == 1
    path.write_text("bank 1 1\nmoney 1 1\n")
    second = run_grid([(TOY, SOURCE)], settings, store)
    assert second.taken == 0 and second.documents[0]["rows"][0]["test"] < first.documents[0]["rows"][0]["test"]
    names = {run.name for run in list_runs(store)}
    assert len(names) == 2 and all("x_k-v.txt" in name for name in names)
    assert len(score_table(runs_for_table(store)).rows) == 2


def test_runs_that_differ_in_x_k_alone_have_names_and_titles_of_their_own(tmp_path):
    for vectors in ("model", "trained:4"):
        run_grid([(TOY, SOURCE)], settings_for(tmp_path, mix="none", seeds=1, word_vectors=vectors), tmp_path / "runs")
    runs = [load_run(run.folder) for run in list_runs(tmp_path / "runs")]
    assert len({run.summary.name for run in runs}) == 2
    assert {run.manifest["extra"]["representation"] for run in runs} == {
        "[x_k of the model 8] -> 8",
        "[x_k trained 4] -> 4",
    }


def test_a_task_file_with_another_metric_or_version_is_another_experiment():
    marks = {data_fingerprint(task, SPLITS) for task in (TOY, replace(TOY, version=2), replace(TOY, metric="macro_f1"))}
    assert len(marks) == 3
