"""Pretraining from text to a model folder, on a small text with structure that an LSTM can learn."""

import math
import random
import re
import subprocess
import sys
import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest

from toolkit.bilm.folder import load_model
from toolkit.config import Settings, resolve
from toolkit.errors import DataError, FormatError, ToolkitError, UsageError
from toolkit.files import read_json
from toolkit.pretrain.gradients import norms
from toolkit.pretrain.graph import TrainingGraph
from toolkit.pretrain.pretrain import pretrain, resume
from toolkit.pretrain.trainer import Trainer
from toolkit.runs.reader import read_metrics, read_run
from toolkit.text.prepare import prepare
from toolkit.text.vocab import Vocabulary

SMALL = {
    "pretrain.preset": "tiny",
    "model.filters": [(1, 8), (2, 8), (3, 16)],
    "model.dim": 32,
    "model.projection_dim": 16,
    "pretrain.batch_size": 8,
    "pretrain.unroll_steps": 10,
    "pretrain.negatives": 16,
    "pretrain.learning_rate": 0.02,
    "pretrain.compute_dtype": "float32",
    "text.input": "tokenised",
    "vocabulary.min_count": 1,
}


def sentences(count: int, seed: int) -> str:
    """Subject, verb and object agree, so that the next word follows from the ones before it."""
    rng, lines = random.Random(seed), []
    for _ in range(count):
        animal, food = rng.choice([("cats", "fish"), ("cows", "grass"), ("birds", "seeds"), ("bees", "honey")])
        adverb = rng.choice(["often", "never", "always", "seldom"])
        lines.append(f"the {animal} {adverb} eat the {food} .")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "train.txt").write_text(sentences(600, 1), encoding="utf-8")
    (folder / "valid.txt").write_text(sentences(60, 2), encoding="utf-8")
    return folder


def settings(folder: Path, **changes) -> Settings:
    options = SMALL | {"paths.runs": folder / "runs", "paths.cache": folder / "cache"}
    return resolve(Path(__file__).parents[2] / "config.toml", options | changes, environment={}).settings


@pytest.fixture(scope="module")
def trained(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    return folder, pretrain([corpus], settings(folder, **{"pretrain.steps": 150}))


def test_perplexity_falls_far_below_the_unigrams(trained) -> None:
    _, document = trained
    perplexity = document["validation_perplexity"]
    assert perplexity["kind"] == "full" and perplexity["n"] == 60 * 8
    assert document["unigram_perplexity"] > 8
    # Animal, adverb: two choices among four in eight targets a sentence; the optimum is 4 ** (2 / 8) = 1.41.
    assert 1.4 < perplexity["forward"] < 2.0 and 1.4 < perplexity["backward"] < 2.0


@pytest.mark.parametrize("optimizer", ["adam", "adagrad"])
def test_a_rate_that_is_far_too_high_exports_no_model_and_says_why(corpus, tmp_path, optimizer) -> None:
    changes = {"pretrain.learning_rate": 1e6, "pretrain.warmup_steps": 0, "pretrain.optimizer": optimizer}
    with (
        warnings.catch_warnings(action="error", category=RuntimeWarning),
        pytest.raises(ToolkitError, match=r"learning_rate \(1000000\.0\).*no model is exported, since no state"),
    ):
        pretrain([corpus], settings(tmp_path, **changes, **{"pretrain.steps": 6, "pretrain.validate_steps": 3}))
    (folder,) = (tmp_path / "runs").iterdir()
    assert not (folder / "model").exists() and not (folder / "results.json").exists()


def test_after_a_blow_up_the_best_validated_state_is_exported(corpus, tmp_path, monkeypatch) -> None:
    train = TrainingGraph.train

    def blows_up(graph, *shares, rate):
        found = train(graph, *shares, rate=rate)
        if int(graph.steps.numpy()) == 5:
            graph.softmax[0].assign(graph.softmax[0] * np.nan)
        return found

    monkeypatch.setattr(TrainingGraph, "train", blows_up)
    with pytest.raises(ToolkitError, match=r"step \d.*holds the weights of step [24]$"):
        pretrain([corpus], settings(tmp_path, **{"pretrain.steps": 9, "pretrain.validate_steps": 2}))
    (folder,) = (tmp_path / "runs").iterdir()
    model = load_model(folder / "model")
    assert math.isfinite(model.card["validation_perplexity"]["mean"])
    assert np.isfinite(model.softmax().weight).all()


def test_the_exported_model_loads_and_holds_what_it_says(trained) -> None:
    folder, document = trained
    model = load_model(Path(document["model"]))
    run = read_run(folder / "runs", document["run"])
    assert run.summary.status == "done"
    assert model.fingerprint == model.card["fingerprint"] == run.manifest["model_fingerprint"]
    assert model.softmax().weight.shape == (len(model.vocabulary), 16)
    assert read_json(model.path / "options.json")["char_cnn"]["n_characters"] == 262
    with h5py.File(model.path / "weights.hdf5") as file:
        assert file["char_embed"].shape == (261, 16)
        assert not [name for name in file if "softmax" in name.lower()]


def test_the_same_seed_repeats_exactly_and_another_does_not(corpus, tmp_path) -> None:
    losses = []
    for seed in (1, 1, 2):
        chosen = settings(tmp_path, **{"pretrain.seed": seed})
        prepared = prepare([corpus], None, chosen.text, 0.01, tmp_path / "cache")
        vocabulary = Vocabulary.from_counts(prepared.words, prepared.counts, 100, 1)
        trainer = Trainer(prepared, vocabulary, chosen)
        losses.append([trainer.graph.train(trainer.batches[step])[0] for step in range(5)])
    assert losses[0] == losses[1]
    assert losses[0] != losses[2]


@pytest.mark.slow
def test_bfloat16_products_train_as_well(corpus, tmp_path) -> None:
    document = pretrain([corpus], settings(tmp_path, **{"pretrain.steps": 150, "pretrain.compute_dtype": "bfloat16"}))
    assert document["compute_dtype"] == "bfloat16"
    assert document["validation_perplexity"]["mean"] < 2.0


def test_a_loss_that_explodes_stops_the_run_and_exports_no_model_of_it(corpus, tmp_path) -> None:
    exploding = {"pretrain.learning_rate": 1e30, "pretrain.clip_norm": 1e30, "pretrain.steps": 100}
    exploding |= {"pretrain.optimizer": "adagrad", "pretrain.initial_bias": "zero"}
    with pytest.raises(ToolkitError, match=r"gradients' norm is .*lower pretrain.learning_rate.*no model"):
        pretrain([corpus], settings(tmp_path, **exploding))
    (folder,) = (tmp_path / "runs").iterdir()
    assert read_run(tmp_path / "runs", folder.name).summary.status == "failed"
    assert not (folder / "model").exists()
    log = (folder / "log.txt").read_text()
    parts = ["character vectors", "character CNN", "highway 1", "projection of the character CNN", "softmax"]
    parts += [f"LSTM layer {layer} {what}" for layer in (1, 2) for what in ("kernel", "bias", "projection")]
    for part in parts:
        assert re.search(rf"{part}: gradient norm (nan|inf|[\d.e+-]+).*, largest weight [\d.e+-]+\n", log), part
    assert "of its values are no finite numbers" in log


def test_the_norms_of_the_parts_make_up_the_norm_of_the_step(corpus, tmp_path) -> None:
    chosen = settings(tmp_path)
    prepared = prepare([corpus], None, chosen.text, 0.01, tmp_path / "cache")
    trainer = Trainer(prepared, Vocabulary.from_counts(prepared.words, prepared.counts, 100, 1), chosen)
    before = [variable.numpy() for variable in trainer.graph.variables_trained]
    parts = norms(trainer.graph, trainer.batches[0])
    for variable, value in zip(trainer.graph.variables_trained, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)
    assert len(parts) == 11 and all(part.finite == 1.0 for part in parts)
    _, norm = trainer.graph.train(trainer.batches[0])
    assert math.sqrt(sum(part.gradient**2 for part in parts)) == pytest.approx(norm, rel=1e-4)


# A rate far too high: perplexity falls first and then rises, so that the best state is not the last.
OVERSHOOTING = {"pretrain.learning_rate": 3.0, "pretrain.validate_steps": 5, "pretrain.validation_tokens": 100}


@pytest.fixture(scope="module")
def stopped_early(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("early")
    chosen = settings(folder, **OVERSHOOTING, **{"pretrain.patience": 2, "pretrain.steps": 500})
    return folder, chosen, pretrain([corpus], chosen)


def validations(folder: Path, run: str) -> dict[int, float]:
    rows = read_metrics(folder / "runs" / run)
    rows = rows[(rows.name == "perplexity") & (rows.split == "valid")]
    assert set(rows.kind) == {"full"}
    return dict(zip(rows.step, rows.value, strict=True))


def test_training_stops_after_as_many_worse_validations_as_patience_says(stopped_early) -> None:
    folder, _, document = stopped_early
    assert document["ended"] == "patience" and document["steps"] < 500
    seen = validations(folder, document["run"])
    assert document["steps"] == max(seen) == document["best_step"] + 2 * 5
    assert document["best_step"] == min(seen, key=seen.get)


def test_the_best_state_is_exported_and_every_record_says_so(stopped_early) -> None:
    folder, _, document = stopped_early
    seen = validations(folder, document["run"])
    best, last = document["best_step"], document["steps"]
    assert (document["exported"], document["exported_step"], document["last_step"]) == ("best", best, last)
    assert document["validation_perplexity"]["mean"] == pytest.approx(seen[best])
    assert document["last_validation_perplexity"]["mean"] == pytest.approx(seen[last])
    run = read_run(folder / "runs", document["run"])
    main = run.results["metrics"][0]
    assert (main["value"], main["last"], main["best_step"]) == (
        pytest.approx(seen[best]),
        pytest.approx(seen[last]),
        best,
    )
    card = load_model(Path(document["model"])).card
    assert card["steps"] == card["best_step"] == best and card["last_step"] == last
    assert f"exported: step {best}, the best by validation" in (run.summary.folder / "log.txt").read_text()


def test_the_exported_weights_have_the_perplexity_that_the_card_states(corpus, stopped_early) -> None:
    folder, chosen, document = stopped_early
    model = load_model(Path(document["model"]))
    prepared = prepare([corpus], None, chosen.text, 0.01, folder / "cache")
    trainer = Trainer(prepared, model.vocabulary, chosen)
    trainer.begin_with(model.bilm, model.softmax())
    assert trainer.validation.run().mean == pytest.approx(document["validation_perplexity"]["mean"], rel=1e-5)


def test_going_on_behind_an_early_stop_starts_from_the_last_state_not_from_the_best(stopped_early) -> None:
    folder, _, document = stopped_early
    again = resume(folder / "runs", document["run"], {})
    assert (again["ended"], again["steps"], again["exported_step"]) == (
        "patience",
        document["steps"],
        document["best_step"],
    )
    more = resume(folder / "runs", document["run"], {"patience": 0, "steps": document["steps"] + 5})
    assert more["ended"] == "steps" and more["steps"] == document["steps"] + 5
    assert set(validations(folder, document["run"])) >= {document["steps"], document["steps"] + 5}


def test_a_lost_best_checkpoint_is_said_and_the_last_state_exported(corpus, tmp_path, caplog) -> None:
    chosen = settings(tmp_path, **OVERSHOOTING, **{"pretrain.patience": 2, "pretrain.steps": 500})
    document = pretrain([corpus], chosen)
    data = tmp_path / "runs" / document["run"] / "checkpoints" / f"step-{document['best_step']:09d}.h5"
    data.write_bytes(data.read_bytes()[:-10])
    again = resume(tmp_path / "runs", document["run"], {})
    assert (again["exported"], again["exported_step"]) == ("last good", document["steps"])
    assert again["validation_perplexity"] == again["last_validation_perplexity"]
    assert "the best state is lost" in caplog.text


def test_a_text_too_small_leaves_no_run_behind(tmp_path) -> None:
    (tmp_path / "few.txt").write_text(sentences(5, 1), encoding="utf-8")
    with pytest.raises(DataError, match=r"add text, or --set pretrain\.batch_size="):
        pretrain([tmp_path / "few.txt"], settings(tmp_path))
    assert not (tmp_path / "runs").exists()


def test_a_pattern_without_files_and_an_empty_file_are_one_clear_line(tmp_path) -> None:
    with pytest.raises(UsageError, match=r"nothing\.txt"):
        pretrain([tmp_path / "nothing.txt"], settings(tmp_path))
    (tmp_path / "empty.txt").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="empty"):
        pretrain([tmp_path / "empty.txt"], settings(tmp_path))
    assert not (tmp_path / "runs").exists()


def test_a_model_folder_without_weights_says_what_is_missing(trained, tmp_path) -> None:
    _, document = trained
    (tmp_path / "options.json").write_text((Path(document["model"]) / "options.json").read_text())
    with pytest.raises(FormatError, match=r"no weights \(\*\.hdf5\)"):
        load_model(tmp_path)


def test_weights_of_another_shape_are_refused_with_both_shapes(trained, tmp_path) -> None:
    _, document = trained
    source = Path(document["model"])
    (tmp_path / "options.json").write_text((source / "options.json").read_text().replace('"dim": 32', '"dim": 48'))
    (tmp_path / "weights.hdf5").write_bytes((source / "weights.hdf5").read_bytes())
    with pytest.raises(FormatError, match=r"\(32, 128\).*|.*\(32, 192\)"):
        load_model(tmp_path)


def test_a_setting_that_resume_would_ignore_is_refused(tmp_path) -> None:
    command = [sys.executable, "-m", "toolkit.cli.main", "pretrain", "--resume", "run", "--set", "model.dim=3"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--set model.dim: with --resume only --epochs, --steps, --minutes and --set pretrain.patience" in done.stderr
