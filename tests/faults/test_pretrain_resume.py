"""kill -9 and --resume: the run goes on as if it had never stopped."""

import contextlib
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from processes import wait_for_steps

from toolkit.config import resolve
from toolkit.errors import DataError, FormatError, UsageError
from toolkit.pretrain import checkpoint
from toolkit.pretrain.pretrain import decay, pretrain, resume
from toolkit.pretrain.trainer import Trainer
from toolkit.runs.reader import read_metrics, read_run
from toolkit.runs.writer import RunWriter
from toolkit.text.prepare import prepare
from toolkit.text.vocab import Vocabulary

TEXT = "the cats often eat the fish .\nthe cows never eat the grass .\nthe bees always make the honey .\n" * 200


def settings(folder: Path, **changes):
    options = {
        "pretrain.preset": "tiny",
        "model.dim": 32,
        "model.projection_dim": 16,
        "model.filters": [(1, 8), (2, 8)],
        "pretrain.unroll_steps": 4,  # a short unrolled graph is traced fast
        "pretrain.batch_size": 8,
        "pretrain.steps": 30,
        "pretrain.dropout": 0.1,  # its masks must be repeated too
        "pretrain.schedule": "constant",  # so that a short run is the beginning of a long one
        "pretrain.warmup_steps": 0,
        "text.input": "tokenised",
        "paths.runs": folder / "runs",
        "paths.cache": folder / "cache",
    }
    return resolve(Path(__file__).parents[2] / "config.toml", options | changes, environment={}).settings


def text(folder: Path) -> Path:
    (folder / "train.txt").write_text(TEXT, encoding="utf-8")
    return folder / "train.txt"


def trainer(folder: Path, **changes) -> Trainer:
    chosen = settings(folder, **({"pretrain.compute_dtype": "float32"} | changes))
    prepared = prepare([text(folder)], None, chosen.text, 0.05, folder / "cache")
    return Trainer(prepared, Vocabulary.from_counts(prepared.words, prepared.counts, 100, 1), chosen)


def steps(trainer: Trainer, count: int) -> list[float]:
    losses = []
    for _ in range(count):
        standing = trainer.standing
        rate = standing.schedule.rate(trainer.step)
        losses.append(trainer.graph.train(trainer.batches[trainer.step], rate=rate)[0])
        standing.seconds += 0.01
        standing.schedule.timed(trainer.step, 0.01, standing.seconds)
    return losses


def save(run: Path, trainer: Trainer, best_step: int | None = None) -> None:
    trainer.standing.best_step = best_step
    trainer.standing.schedule.renew(trainer.step, trainer.standing.seconds)
    checkpoint.save(run, trainer.graph, trainer.standing.progress(trainer.step))


RECIPES = {
    "bfloat16": {"pretrain.compute_dtype": "bfloat16"},
    "adagrad": {"pretrain.optimizer": "adagrad"},
    "in the warm-up": {"pretrain.warmup_steps": 20, "pretrain.steps": 60, "pretrain.schedule": "cosine"},
    "stable": {"pretrain.schedule": "warmup-stable-decay", "pretrain.steps": 400, "pretrain.average": 0.9},
    "minutes": {"pretrain.schedule": "linear", "pretrain.minutes": 0.02},
    "in the decay": {"pretrain.schedule": "warmup-stable-decay", "pretrain.steps": 48, "pretrain.decay_share": 0.9},
}


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_losses_after_a_restart_equal_those_of_an_uninterrupted_run(tmp_path, recipe) -> None:
    straight = trainer(tmp_path, **RECIPES[recipe])
    steps(straight, 13)
    save(tmp_path / "run", straight)
    expected = steps(straight, 34), straight.validation.run()
    again = trainer(tmp_path, **RECIPES[recipe])
    again.restore(tmp_path / "run")
    assert again.step == 13
    assert (steps(again, 34), again.validation.run()) == expected


@pytest.fixture(scope="module")
def decayed(tmp_path_factory) -> tuple[Path, dict, dict]:
    """A training that was stopped while its rate was stable, and the decay of it."""
    folder = tmp_path_factory.mktemp("decayed")
    open_end = {"pretrain.schedule": "warmup-stable-decay", "pretrain.steps": 12, "pretrain.decay_share": 0.01}
    trunk = pretrain([text(folder)], settings(folder, **open_end, **{"pretrain.warmup_steps": 3}), name="trunk")
    before = {path: path.read_bytes() for path in (folder / "runs" / trunk["run"]).rglob("*") if path.is_file()}
    branch = decay(folder / "runs", "trunk", steps=20, minutes=None)
    assert {path: path.read_bytes() for path in before} == before
    return folder, trunk, branch


def rates(folder: Path, run: str) -> dict[int, float]:
    metrics = read_metrics(folder / "runs" / run)
    rows = metrics[metrics.name == "learning_rate"]
    return dict(zip(rows.step, rows.value, strict=True))


def test_a_decay_is_a_run_of_its_own_that_starts_at_the_others_checkpoint(decayed) -> None:
    folder, trunk, branch = decayed
    assert branch["run"].endswith("-pretrain-trunk-decayed") and branch["steps"] == 12 + 20
    manifest = read_run(folder / "runs", branch["run"]).manifest["extra"]
    assert manifest["decays"] == {"run": trunk["run"], "step": 12}
    peak = settings(folder).pretrain.learning_rate
    assert rates(folder, branch["run"]) == {20: pytest.approx(peak * 13 / 20), 30: pytest.approx(peak * 3 / 20)}


def test_a_killed_decay_resumes_exactly_and_the_other_run_continues(decayed, tmp_path) -> None:
    folder, trunk, branch = decayed
    shutil.copytree(folder, tmp_path / "copy")
    store = tmp_path / "copy" / "runs"
    for name in ("032.h5", "032.json"):
        (store / branch["run"] / checkpoint.FOLDER / f"step-000000{name}").unlink()
    again = resume(store, branch["run"], {})
    assert again["last_validation_perplexity"] == branch["last_validation_perplexity"]
    longer = resume(store, trunk["run"], {"steps": 30})
    assert (
        longer["steps"] == 30 and rates(tmp_path / "copy", trunk["run"])[20] == settings(folder).pretrain.learning_rate
    )


def test_a_decay_without_a_budget_is_refused(tmp_path) -> None:
    for budget in ({"steps": None, "minutes": None}, {"steps": 3, "minutes": 1.0}):
        with pytest.raises(UsageError, match="needs a budget: give either --steps or --minutes"):
            decay(tmp_path / "runs", "trunk", **budget)


def test_a_new_budget_says_what_it_does_to_the_rate(tmp_path, caplog) -> None:
    caplog.set_level("INFO")
    falling = {"pretrain.schedule": "linear", "pretrain.steps": 10, "pretrain.learning_rate": 0.002}
    first = pretrain([text(tmp_path)], settings(tmp_path, **falling), name="short")
    resume(tmp_path / "runs", first["run"], {"steps": 20})
    assert "at step 10 the learning rate is 0.001, by the old budget it would be 0" in caplog.text


def test_a_checkpoint_of_another_optimizer_is_refused_by_what_it_lacks(tmp_path) -> None:
    one = trainer(tmp_path, **{"pretrain.optimizer": "adagrad"})
    save(tmp_path, one)
    with pytest.raises(FormatError, match=r"but not means, squares.*written with another optimizer"):
        trainer(tmp_path).restore(tmp_path)


def test_an_interrupt_right_behind_a_step_counts_that_step(tmp_path, monkeypatch) -> None:
    one = trainer(tmp_path)
    train = one.graph.train

    def interrupted(batch, rate):
        result = train(batch, rate=rate)
        if int(one.graph.steps) == 4:
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(one.graph, "train", interrupted)
    with RunWriter.start(tmp_path / "runs", "pretrain", "interrupted", one.all_settings, 1) as run:
        document = one.run(run)
    assert document["stopped"] and document["steps"] == 4
    monkeypatch.undo()
    expected = steps(one, 5)
    again = trainer(tmp_path)
    again.restore(run.folder)
    assert again.step == 4
    assert steps(again, 5) == expected


def test_the_last_two_checkpoints_and_the_best_are_kept(tmp_path) -> None:
    one = trainer(tmp_path)
    for _ in range(5):
        steps(one, 1)
        save(tmp_path, one, best_step=2 if one.step >= 2 else None)
    kept = sorted(path.name for path in (tmp_path / checkpoint.FOLDER).iterdir())
    assert kept == [f"step-{step:09d}.{suffix}" for step in (2, 4, 5) for suffix in ("h5", "json")]


@pytest.mark.parametrize("damage", ["cut", "flipped", "no data", "description cut"])
def test_a_damaged_checkpoint_is_passed_over_aloud(tmp_path, caplog, damage) -> None:
    one = trainer(tmp_path)
    for _ in range(2):
        steps(one, 1)
        save(tmp_path, one)
    data = tmp_path / checkpoint.FOLDER / "step-000000002.h5"
    if damage == "cut":
        data.write_bytes(data.read_bytes()[:-100])
    elif damage == "flipped":
        whole = bytearray(data.read_bytes())
        whole[len(whole) // 2] ^= 1
        data.write_bytes(whole)
    elif damage == "no data":
        data.unlink()
    else:
        data.with_suffix(".json").write_text('{"step": 2')
    again = trainer(tmp_path)
    again.restore(tmp_path)
    assert again.step == 1
    assert "taking the one before it" in caplog.text


def test_without_a_sound_checkpoint_the_reason_is_said(tmp_path) -> None:
    with pytest.raises(FormatError, match=r"no sound checkpoint.*holds none yet"):
        trainer(tmp_path).restore(tmp_path)


@pytest.mark.slow
def test_a_finished_run_can_be_trained_on_and_equals_one_long_run(tmp_path) -> None:
    (tmp_path / "long").mkdir()
    corpus = text(tmp_path)
    first = pretrain([corpus], settings(tmp_path, **{"pretrain.steps": 10}), name="short")
    second = resume(tmp_path / "runs", first["run"], {"steps": 25})
    long = pretrain([corpus], settings(tmp_path, **{"pretrain.steps": 25}), name="long")
    assert second["run"] == first["run"] and second["steps"] == 25
    assert second["last_validation_perplexity"] == long["last_validation_perplexity"]
    figures = []
    for run in (first["run"], long["run"]):
        metrics = read_metrics(tmp_path / "runs" / run)
        rows = metrics[(metrics.name == "perplexity") & (metrics.split == "train")]
        assert not rows.step.duplicated().any()
        figures.append(dict(zip(rows.step, rows.value, strict=True)))
    assert figures[0] == figures[1]


def test_changed_text_is_refused_with_both_fingerprints(tmp_path) -> None:
    first = pretrain([text(tmp_path)], settings(tmp_path, **{"pretrain.steps": 3}))
    (tmp_path / "train.txt").write_text(TEXT + "one more sentence .\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"has changed: it was [0-9a-f]{16}, now it is [0-9a-f]{16}"):
        resume(tmp_path / "runs", first["run"], {})


def test_only_a_pretraining_run_can_be_resumed(tmp_path) -> None:
    with pytest.raises(UsageError, match="no run"):
        resume(tmp_path / "runs", "nothing", {})


@pytest.mark.slow
def test_kill_9_at_random_moments_changes_nothing(tmp_path, start) -> None:
    """Ten kills of a real process in warm-up, stable phase and decay, against one uninterrupted run."""
    rng = np.random.default_rng(1)
    sets = ("pretrain.checkpoint_minutes=0.001", "pretrain.steps=400", "pretrain.average=0.99")
    sets += ("pretrain.schedule=warmup-stable-decay", "pretrain.warmup_steps=100", "pretrain.decay_share=0.4")
    process = start(tmp_path, *sets)
    folder = wait_for_steps(tmp_path, process)
    for _ in range(10):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=rng.uniform(0.1, 2.0))
        process.kill()
        process.communicate()
        process = start(tmp_path, resume=folder.name)
        wait_for_steps(tmp_path, process)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    shutil.move(folder, tmp_path / "killed")
    process = start(tmp_path, *sets)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    (straight,) = (tmp_path / "runs").iterdir()
    frames = [read_metrics(path) for path in (tmp_path / "killed", straight)]
    losses = [f[(f.name == "perplexity") & (f.split == "train")].set_index("step").value for f in frames]
    assert losses[0].index.tolist() == losses[1].index.tolist()
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    assert read_run(tmp_path / "runs", straight.name).results["metrics"][0]["value"] > 1
