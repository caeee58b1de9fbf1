"""Grids of evaluations: what is run, what is taken from the store, what is refused, and parts of the training data."""

import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tasks.adapter import grid as module
from tasks.adapter.describe import evaluation_text
from tasks.adapter.evaluate import source_of
from tasks.adapter.features import LayerSource
from tasks.adapter.fraction import fractions_of, part_of
from tasks.adapter.grid import run_grid
from tasks.own_data import Given
from tasks.task import Example, Splits, Task, in_folds
from toolkit.bilm.folder import load_model
from toolkit.config import Settings
from toolkit.errors import ToolkitError, UsageError
from toolkit.files import sha256
from toolkit.runs.notes import archive
from toolkit.runs.reader import list_runs, load_run, read_predictions
from toolkit.runs.table import runs_for_table, score_table

WORDS = ("the", "of", "was", "in", "a", "to")


def examples(name: str, count: int) -> list[Example]:
    """Sentences that are positive where they hold "bank"."""
    rng = np.random.default_rng(list(name.encode()))
    found = []
    for number in range(count):
        tokens = [*rng.choice(WORDS, rng.integers(1, 6)), "bank" if number % 2 else "money", str(number)]
        found.append(Example(f"{name}-{number}", tuple(tokens), "positive" if number % 2 else "negative"))
    return found


def task_of(name: str, splits: Splits, kind: str = "sentence") -> Task:
    return Task(
        name=name,
        version=1,
        title="Does the sentence hold the word bank?",
        metric="accuracy",
        labels=("negative", "positive"),
        licence="none",
        citation="none",
        source="https://example.org",
        sizes={},
        places=((Given(Path()), lambda path: splits),),
        kind=kind,
        folds=len(splits.folds),
    )


TOY = task_of("toy", Splits(examples("train", 60), examples("dev", 20), examples("test", 30), "made up"))
FOLDS = task_of("folds", in_folds(examples("fold", 60), "made up", 4))
TAGS = task_of("tags", TOY.load(None, Path()), "tagging")


def drawn(sentences: Iterable[Sequence[str]]) -> Iterable[np.ndarray]:
    """Layers [3, T, 16] of which the middle one names the word and the others are noise."""
    for number, tokens in enumerate(sentences):
        layers = np.random.default_rng(number).normal(size=(3, len(tokens), 16))
        layers[1] = [np.random.default_rng(list(token.encode())).normal(size=16) for token in tokens]
        yield layers.astype(np.float32)


SOURCE = LayerSource("drawn", "f" * 16, "warm", 3, 16, drawn)


def settings_for(root: Path, **keys: object) -> Settings:
    # Of a part of the training examples, which each seed draws anew: of all of them one seed would say all.
    chosen = {
        "word_vectors": "model",
        "head": "linear",
        "epochs": 1,
        "mix": "none,layer:1",
        "seeds": 2,
        "train_fraction": 0.9,
    } | keys
    return Settings.model_validate({"paths": {"cache": root / "cache"}, "evaluate": chosen})


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> tuple[Path, Settings]:
    """A store with the four runs of one grid on the toy task."""
    root = tmp_path_factory.mktemp("grid")
    settings = settings_for(root)
    run_grid([(TOY, SOURCE)], settings, root / "runs")
    return root, settings


@pytest.fixture
def store(finished, tmp_path) -> Path:
    return Path(shutil.copytree(finished[0] / "runs", tmp_path / "runs"))


def test_finished_runs_are_taken_and_only_what_is_missing_is_trained(finished, store):
    root, settings = finished
    before = {run.id for run in list_runs(store)}
    assert len(before) == 4
    grid = run_grid([(TOY, SOURCE)], settings, store)
    assert (set(grid.runs), grid.taken) == (before, 4)
    wider = run_grid([(TOY, SOURCE)], settings_for(root, mix="none,layer:1,top", seeds=2), store)
    assert wider.taken == 4
    new = [load_run(run.folder).settings for run in list_runs(store) if run.id not in before]
    assert sorted((one["evaluate.mix"], one["evaluate.seed"]) for one in new) == [("top", 1), ("top", 2)]


def test_a_taken_run_gives_the_row_that_it_gave_when_it_was_trained(finished, tmp_path):
    settings = finished[1]
    trained = run_grid([(TOY, SOURCE)], settings, tmp_path / "runs")
    taken = run_grid([(TOY, SOURCE)], settings, tmp_path / "runs")
    assert taken.documents == trained.documents
    json.dumps(taken.documents, allow_nan=False)


@pytest.mark.parametrize("how", ["archived", "no predictions", "failed", "other state", "other model"])
def test_a_run_that_does_not_stand_for_what_is_asked_is_trained_anew(finished, store, how):
    _, settings = finished
    (first, *_), source = list_runs(store), SOURCE
    if how == "archived":
        archive(first.folder)
    elif how == "no predictions":
        (first.folder / "predictions.parquet").write_bytes(b"PAR1")
    elif how == "failed":
        path = first.folder / "run.json"
        path.write_text(path.read_text().replace('"done"', '"failed"'))
    elif how == "other state":
        source = replace(source, state="zero")
    else:
        source = replace(source, fingerprint="0" * 16)
    expected = 0 if how.startswith("other") else 3
    grid = run_grid([(TOY, source)], settings, store)
    assert grid.taken == expected
    assert len(list_runs(store)) == 8 - expected


def test_rerun_trains_all_anew(finished, store):
    grid = run_grid([(TOY, SOURCE)], finished[1], store, rerun=True)
    assert grid.taken == 0 and len(list_runs(store)) == 8


def test_what_another_process_finishes_meanwhile_is_taken(finished, store, tmp_path, monkeypatch):
    """The other process is played by the first training, which brings a finished run along."""
    settings = finished[1]
    others = [run for run in list_runs(store) if run.seed == 2]
    empty = tmp_path / "empty"

    def train(*arguments: object):
        if not (empty / others[0].id).exists():
            for run in others:
                shutil.copytree(run.folder, empty / run.id)
        return module_run_seed(*arguments)

    module_run_seed = module.run_seed
    monkeypatch.setattr(module, "run_seed", train)
    run_grid([(TOY, SOURCE)], settings, empty)
    assert len(list_runs(empty)) == 4


@pytest.mark.parametrize(
    ("pairs", "keys", "message"),
    [
        ([(TOY, SOURCE), (TAGS, SOURCE)], {"head": "cnn"}, "task 'tags' .* head 'cnn'"),
        ([(TOY, SOURCE)], {"head": "tagger"}, "task 'toy' .* head 'tagger'"),
        ([(TOY, SOURCE), (FOLDS, replace(SOURCE, n_layers=2))], {"mix": "top,layer:2"}, "task 'folds': .*layer:2"),
        ([(TOY, replace(SOURCE, n_layers=1))], {"mix": "top,gated"}, "mix 'gated' has nothing to weigh"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_trained(tmp_path, pairs, keys, message):
    with pytest.raises(UsageError, match=message):
        run_grid(pairs, settings_for(tmp_path, **keys), tmp_path / "runs")
    assert not (tmp_path / "runs").exists() and not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("keys", "runs"),
    [
        ({"mix": "top"}, 1),
        ({"mix": "top", "train_fraction": 0.9}, 2),
        ({"mix": "learned"}, 2),
        ({"mix": "top", "head": "cnn"}, 2),
        ({"mix": "top", "word_vectors": "trained:4"}, 2),
    ],
)
def test_one_seed_says_all_where_nothing_is_left_to_chance(tmp_path, keys, runs):
    settings = settings_for(tmp_path, **{"train_fraction": 1.0} | keys)
    grid = run_grid([(TOY, SOURCE)], settings, tmp_path / "runs")
    assert len(grid.runs) == runs
    scores = run_grid([(TOY, SOURCE)], settings, tmp_path / "again", rerun=True).documents[0]["rows"][0]["test_by_seed"]
    assert scores == grid.documents[0]["rows"][0]["test_by_seed"]


def test_folds_are_scored_on_every_example_once(tmp_path):
    grid = run_grid([(FOLDS, SOURCE)], settings_for(tmp_path, mix="layer:1", seeds=1), tmp_path / "runs")
    (row,) = grid.documents[0]["rows"]
    assert row["n"] == 60
    frame = read_predictions(tmp_path / "runs" / row["runs"][0])
    test = frame[frame["split"] == "test"]
    ids = sorted(example.id for fold in FOLDS.load(None, tmp_path).folds for example in fold)
    assert sorted(test["example_id"]) == ids
    assert row["test"] == pytest.approx((test["gold"] == test["predicted"]).mean())


def test_the_curve_has_a_row_a_fraction_and_compares_within_each(tmp_path):
    grid = run_grid([(TOY, SOURCE)], settings_for(tmp_path, seeds=1), tmp_path / "runs", [0.1, 1.0])
    rows = grid.documents[0]["rows"]
    assert [(row["train_fraction"], row["mix"]) for row in rows] == [
        (fraction, mix) for fraction in (0.1, 1.0) for mix in ("none", "layer:1")
    ]
    assert len(grid.documents[0]["comparisons"]) == 2
    table = score_table(runs_for_table(tmp_path / "runs", grid.runs))
    assert "layer:1, 0.1 of train" in evaluation_text(grid.documents, table)
    assert [row.settings for row in table.rows] == ["train_fraction=0.1"] * 2 + ["train_fraction=1.0"] * 2


def test_a_grid_stops_at_a_training_that_fails_and_goes_on_from_there(tmp_path, monkeypatch):
    settings, train, calls = settings_for(tmp_path), module.run_seed, []

    def failing(*arguments: object):
        calls.append(1)
        if len(calls) == 3:
            raise ToolkitError("the loss is nan")
        return train(*arguments)

    monkeypatch.setattr(module, "run_seed", failing)
    with pytest.raises(ToolkitError):
        run_grid([(TOY, SOURCE)], settings, tmp_path / "runs")
    assert run_grid([(TOY, SOURCE)], settings, tmp_path / "runs").taken == 2


def test_the_models_files_and_weights_are_the_same_behind_a_grid(tiny_model, tmp_path):
    model = load_model(tiny_model)
    before = {path: sha256(path) for path in tiny_model.iterdir()}
    weights = [variable.numpy().copy() for variable in model.bilm.variables]
    settings = settings_for(tmp_path, mix="learned", head="cnn", seeds=1)
    run_grid([(TOY, source_of(model, settings))], settings, tmp_path / "runs")
    assert {path: sha256(path) for path in tiny_model.iterdir()} == before
    for variable, weight in zip(model.bilm.variables, weights, strict=True):
        np.testing.assert_array_equal(variable.numpy(), weight)
    assert load_model(tiny_model).fingerprint == model.fingerprint


SKEWED = [Example(str(i), ("w",), "rare" if i in (3, 77) else "often") for i in range(200)]


def test_parts_are_nested_stratified_and_hold_every_class():
    rows = np.arange(10, 190)
    parts = [set(part_of(SKEWED, rows, fraction, 1).tolist()) for fraction in (0.01, 0.1, 0.5, 1.0)]
    assert [len(part) for part in parts] == [3, 19, 91, 180]
    assert all(smaller < larger for smaller, larger in pairwise(parts))
    assert all(77 in part for part in parts)


def test_another_seed_draws_another_part_and_the_same_seed_the_same():
    rows = np.arange(200)
    first, again, other = (part_of(SKEWED, rows, 0.1, seed).tolist() for seed in (1, 1, 2))
    assert first == again == sorted(first)
    assert first != other


def test_parts_of_tagged_sentences_show_every_tag_and_are_nested():
    tagged = [Example(str(i), ("w", "v"), tags=("A", "B" if i == 50 else "A")) for i in range(100)]
    parts = [set(part_of(tagged, np.arange(100), fraction, 1).tolist()) for fraction in (0.01, 0.05, 0.3)]
    assert all(50 in part for part in parts)
    assert [len(part) for part in parts][1:] == [5, 30]
    assert parts[0] <= parts[1] < parts[2]


def test_fractions_are_read_and_refused():
    assert fractions_of(None) == []
    assert fractions_of("0.01, 0.1,1") == [0.01, 0.1, 1.0]
    for text, message in (("0", "above 0"), ("2", "at most 1"), ("a,1", "'a'"), ("1,1.0", "twice"), ("nan", "'nan'")):
        with pytest.raises(UsageError, match=message):
            fractions_of(text)


@pytest.mark.parametrize(("fraction", "size"), [(0.07, 7), (0.14, 14), (0.28, 28), (0.55, 55), (0.56, 56), (0.001, 1)])
def test_a_share_is_counted_in_decimals(fraction: float, size: int) -> None:
    examples = [Example(f"e{number}", ("a",), "x") for number in range(100)]
    assert len(part_of(examples, np.arange(100), fraction, 1)) == size
