"""A training that was interrupted goes on behind its last epoch and ends as if nothing had happened."""

import json
import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tasks.adapter.checkpoint import FOLDER, State, path_of, read_state, write_state
from tasks.adapter.epochs import Epoch
from tasks.adapter.features import LayerSource
from tasks.adapter.grid import run_grid
from tasks.own_data import Given
from tasks.task import Example, Splits, Task, in_folds
from toolkit.config import Settings
from toolkit.errors import FormatError
from toolkit.runs import schema
from toolkit.runs.lock import RunLock
from toolkit.runs.notes import archive
from toolkit.runs.reader import list_runs, load_run, read_layers, read_metrics, read_predictions
from toolkit.runs.writer import RunWriter

WORDS = ("the", "of", "was", "in", "a", "to")
LABELS = ("negative", "positive")


def examples(name: str, count: int) -> list[Example]:
    rng = np.random.default_rng(list(name.encode()))
    drawn = [[*rng.choice(WORDS, rng.integers(1, 6)), str(number)] for number in range(count)]
    return [Example(f"{name}-{n}", tuple(tokens), LABELS[n % 2]) for n, tokens in enumerate(drawn)]


def task_of(splits: Splits) -> Task:
    places = ((Given(Path()), lambda path: splits),)
    folds = len(splits.folds)
    return Task("toy", 1, "Toy", "accuracy", LABELS, "none", "none", "none", {}, places, {}, folds=folds)


TOY = task_of(Splits(examples("train", 64), examples("dev", 24), examples("test", 24), "made up"))
FOLDS = task_of(in_folds(examples("fold", 60), "made up", 3))


def drawn(sentences):
    for number, tokens in enumerate(sentences):
        yield np.random.default_rng(number).normal(size=(3, len(tokens), 8)).astype(np.float32)


SOURCE = LayerSource("drawn", "f" * 16, "warm", 3, 8, drawn)


def settings_for(root: Path, **keys: object) -> Settings:
    chosen = {
        "word_vectors": "model",
        "head": "bcn",
        "mix": "gated",
        "epochs": 4,
        "patience": 4,
        "hidden": 4,
        "batch_size": 16,
    } | keys
    return Settings.model_validate({"paths": {"cache": root / "cache"}, "evaluate": chosen})


class Interrupts:
    """Makes the run stop, as Ctrl-C does, when it tells of the loss of its nth epoch."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, epoch: int) -> None:
        self.told, metric = 0, RunWriter.metric

        def telling(run: RunWriter, name: str, *arguments: object, **more: object) -> None:
            self.told += name == "loss"
            if self.told == epoch:
                raise KeyboardInterrupt
            metric(run, name, *arguments, **more)

        monkeypatch.setattr(RunWriter, "metric", telling)


def interrupted(task: Task, settings: Settings, store: Path, epoch: int = 3) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        Interrupts(patch, epoch)
        with pytest.raises(KeyboardInterrupt):
            run_grid([(task, SOURCE)], settings, store)
    (run,) = list_runs(store)
    assert run.status == schema.STOPPED
    return run.folder


def check_equal(one: Path, other: Path) -> None:
    left, right = read_predictions(one), read_predictions(other)
    np.testing.assert_array_equal(np.stack(left["probabilities"]), np.stack(right["probabilities"]))
    assert read_layers(one) == read_layers(other)
    results = [load_run(folder).results | {"seconds": 0} for folder in (one, other)]
    assert results[0] == results[1]
    metrics = [read_metrics(folder).drop(columns="seconds") for folder in (one, other)]
    assert metrics[0].equals(metrics[1])


@pytest.mark.parametrize(
    ("task", "keys", "epoch", "where"),
    [
        (TOY, {}, 3, "behind epoch 2"),
        (TOY, {"word_vectors": "trained:6", "head": "bilstm", "mix_at": "both"}, 2, "behind epoch 1"),
        (FOLDS, {"head": "cnn", "epochs": 2}, 4, "behind epoch 1 of round 2"),
    ],
)
def test_a_run_goes_on_behind_its_last_epoch_to_the_same_bits(tmp_path, caplog, task, keys, epoch, where):
    settings = settings_for(tmp_path, **keys)
    folder = interrupted(task, settings, tmp_path / "runs", epoch)
    assert list((folder / FOLDER).iterdir())
    caplog.set_level(logging.INFO)
    run_grid([(task, SOURCE)], settings, tmp_path / "runs")
    assert f"{folder.name} goes on {where}" in [line.removesuffix("\n") for line in caplog.messages]
    (run,) = list_runs(tmp_path / "runs")
    assert (run.folder, run.status, (folder / FOLDER).exists()) == (folder, schema.DONE, False)
    assert len(load_run(folder).manifest["extra"]["resumed"]) == 1
    run_grid([(task, SOURCE)], settings, tmp_path / "whole")
    check_equal(folder, list_runs(tmp_path / "whole")[0].folder)


@pytest.mark.parametrize("damage", ["flipped", "cut", "another network"])
def test_a_damaged_state_is_told_and_the_training_starts_over(tmp_path, caplog, damage):
    settings = settings_for(tmp_path, head="cnn", epochs=3)
    folder = interrupted(TOY, settings, tmp_path / "runs")
    path = path_of(folder, 1)
    data = bytearray(path.read_bytes())
    if damage == "another network":
        state = read_state(path)
        write_state(path, replace(state, now=state.now[::-1]))
    else:
        data[len(data) // 2] ^= 1
        path.write_bytes(data if damage == "flipped" else data[:-100])
    run_grid([(TOY, SOURCE)], settings, tmp_path / "runs")
    assert "this training starts over" in caplog.text
    run_grid([(TOY, SOURCE)], settings, tmp_path / "whole")
    left, right = (read_predictions(list_runs(tmp_path / name)[0].folder) for name in ("runs", "whole"))
    np.testing.assert_array_equal(np.stack(left["probabilities"]), np.stack(right["probabilities"]))


@pytest.mark.parametrize("why", ["archived", "other vectors", "other settings", "another process", "rerun"])
def test_a_run_that_is_not_this_training_or_not_ours_is_left_alone(tmp_path, why):
    settings = settings_for(tmp_path, head="cnn", epochs=3)
    folder = interrupted(TOY, settings, tmp_path / "runs")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != schema.NOTES}
    source = replace(SOURCE, state="other") if why == "other vectors" else SOURCE
    if why == "archived":
        archive(folder, True)
    if why == "other settings":
        settings = settings_for(tmp_path, head="cnn", epochs=3, dropout=0.2)
    if why == "another process":
        lock = RunLock(folder)
        run_grid([(TOY, source)], settings, tmp_path / "runs")
        lock.release()
    else:
        run_grid([(TOY, source)], settings, tmp_path / "runs", rerun=why == "rerun")
    assert len(list_runs(tmp_path / "runs")) == 2
    assert {path: path.read_bytes() for path in before} == before


STATE = State(
    [Epoch(1, 4, 0.1 + 0.2, 1 / 3, {"input": ([0.25, 0.75], 1.5)})],
    [np.arange(6, dtype=np.float32).reshape(2, 3), np.float32(7)],
    [np.arange(3, dtype=np.uint32), np.int64(2**40), np.zeros((0, 2))],
    np.random.default_rng(1).bit_generator.state,
)


def test_a_state_is_read_as_it_was_written(tmp_path):
    write_state(tmp_path / "state", STATE)
    found = read_state(tmp_path / "state")
    assert (found.history, found.shuffle) == (STATE.history, STATE.shuffle)
    for name in ("best", "now"):
        for one, other in zip(getattr(found, name), getattr(STATE, name), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


def test_no_damaged_byte_of_a_state_goes_unseen(tmp_path):
    path = tmp_path / "state"
    write_state(path, STATE)
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :])
        with pytest.raises(FormatError, match="damaged"):
            read_state(path)
    for length in (0, 10, 64, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(FormatError, match="damaged"):
            read_state(path)
    with pytest.raises(FormatError, match="cannot be read"):
        read_state(tmp_path / "absent")


def test_a_training_that_has_ended_keeps_its_best_weights_alone(tmp_path):
    settings = settings_for(tmp_path, head="cnn", epochs=2)
    folder = interrupted(FOLDS, settings, tmp_path / "runs", 4)
    ended, under_way = (read_state(path_of(folder, number)) for number in (1, 2))
    assert not ended.now and ended.best and under_way.now
    assert [len(state.history) for state in (ended, under_way)] == [2, 1]
    assert json.loads((folder / schema.MANIFEST).read_text())["status"] == schema.STOPPED
