"""The adapters' path: layers cached once, one training loop, runs with everything that a reader needs."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tasks.adapter import rounds as module
from tasks.adapter.cache import LayerCache
from tasks.adapter.describe import evaluation_text
from tasks.adapter.evaluate import evaluate, source_of
from tasks.adapter.features import Features, LayerSource, features_of
from tasks.adapter.fit import batches
from tasks.data import Folder
from tasks.reading import label_first
from tasks.task import Splits, Task
from toolkit.bilm.folder import load_model
from toolkit.config import Settings
from toolkit.embed.encoder import Encoder
from toolkit.errors import FormatError, UsageError
from toolkit.runs.compare import compare_runs
from toolkit.runs.describe_comparison import score_rows
from toolkit.runs.describe_table import table_text
from toolkit.runs.reader import list_runs, load_run, read_layers, read_metrics, read_predictions, summarise
from toolkit.runs.table import runs_for_table, score_table
from toolkit.stats import as_counts, mean_score, score_interval

LABELS = {"0": "negative", "1": "positive"}
WORDS = ("the", "of", "was", "in", "a", "to")


def read(folder: Path) -> Splits:
    parts = (label_first(folder / name, LABELS, name) for name in ("train", "dev", "test"))
    return Splits(*parts, "made up")


TASK = Task(
    name="toy",
    version=1,
    title="Does the sentence hold the word bank?",
    metric="accuracy",
    labels=("negative", "positive"),
    licence="none",
    citation="none",
    source="https://example.org",
    sizes={},
    places=((Folder("toy", ("train", "dev", "test")), read),),
)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """The toy task: a sentence is positive where it holds "bank"."""
    folder = tmp_path_factory.mktemp("data") / "toy"
    folder.mkdir()
    rng = np.random.default_rng(1)
    for name, n in (("train", 160), ("dev", 40), ("test", 60)):
        lines = []
        for number in range(n):
            tokens = list(rng.choice(WORDS, rng.integers(1, 7)))
            tokens[rng.integers(len(tokens))] = "bank" if number % 2 else "money"
            lines.append(f"{number % 2} {' '.join(tokens)}\n")
        (folder / name).write_text("".join(lines), encoding="utf-8")
    return folder.parent


@pytest.fixture(scope="module")
def model(tiny_model):
    return load_model(tiny_model)


def settings_for(data: Path, root: Path, **evaluate_keys: object) -> Settings:
    keys = {
        "word_vectors": "model",
        "head": "linear",
        "epochs": 20,
        "patience": 8,
        "batch_size": 16,
        "learning_rate": 0.05,
        "dropout": 0.1,
        "hidden": 8,
    }
    return Settings.model_validate(
        {"paths": {"data": data, "cache": root / "cache", "runs": root / "runs"}, "evaluate": keys | evaluate_keys}
    )


@pytest.fixture(scope="module")
def evaluated(data, model, tmp_path_factory):
    """Two mixes, two seeds asked for: the document, the store and the settings."""
    root = tmp_path_factory.mktemp("evaluated")
    settings = settings_for(data, root, mix="none,learned", seeds=2)
    return evaluate(TASK, source_of(model, settings), settings, root / "runs"), root / "runs", settings


def counted(source: LayerSource) -> tuple[LayerSource, list[int]]:
    """The same source, and a list that grows by one number at each call of `encode`."""
    calls: list[int] = []

    def encode(sentences: Iterable[Sequence[str]]) -> Iterable[np.ndarray]:
        calls.append(1)
        return source.encode(sentences)

    return replace(source, encode=encode), calls


def test_document_holds_what_the_command_line_promises(evaluated):
    document, _, _ = evaluated
    json.dumps(document, allow_nan=False)
    assert (document["task"], document["metric"]) == ("toy", "accuracy")
    assert [row["mix"] for row in document["rows"]] == ["none", "learned"]
    for row, seeds in zip(document["rows"], (1, 2), strict=True):
        assert (row["x_k"], row["head"], row["seeds"], row["n"], len(row["runs"])) == (True, "linear", seeds, 60, seeds)
        assert row["low"] <= row["test"] <= row["high"]
        # A logistic regression on fixed vectors is the same for every seed: it has one run.
        spread = len(set(row["test_by_seed"])) > 1
        assert row["interval"] == ("over examples and 2 seeds" if spread else "over examples")
    none, learned = document["rows"]
    assert none["layer_weights"] is None and none["gamma"] is None
    assert sum(learned["layer_weights"]) == pytest.approx(1)
    assert len(learned["layer_weights_sd"]) == 3


def drawn(sentences: Iterable[Sequence[str]]) -> Iterable[np.ndarray]:
    """Layers [3, T, 16] of which the middle one names the word and the others are noise."""
    for number, tokens in enumerate(sentences):
        layers = np.random.default_rng(number).normal(size=(3, len(tokens), 16))
        layers[1] = [np.random.default_rng(list(token.encode())).normal(size=16) for token in tokens]
        layers[0, :, 8:] = layers[0, :, :8]
        yield layers.astype(np.float32)


@pytest.mark.parametrize("head", ["linear", "bilstm"])
def test_learned_mix_finds_the_layer_that_knows_and_none_does_not(data, tmp_path, head):
    settings = settings_for(data, tmp_path, mix="none,learned,layer:1", head=head)
    source = LayerSource("drawn", "f" * 16, "warm", 3, 16, drawn)
    none, learned, known = evaluate(TASK, source, settings, tmp_path / "runs")["rows"]
    assert none["test"] < 0.7
    assert learned["test"] > 0.8 and known["test"] > 0.85
    assert np.argmax(learned["layer_weights"]) == 1


def test_one_seed_has_the_interval_over_examples(data, model, tmp_path):
    settings = settings_for(data, tmp_path, mix="top", epochs=1)
    (row,) = evaluate(TASK, source_of(model, settings), settings, tmp_path / "runs")["rows"]
    predictions = read_predictions(tmp_path / "runs" / row["runs"][0])
    test = predictions[predictions["split"] == "test"]
    expected = score_interval(as_counts(test["gold"] == test["predicted"]), mean_score)
    assert (row["low"], row["high"]) == pytest.approx(expected)
    assert row["interval"] == "over examples"
    assert row["layer_weights"] == [0, 0, 1] and row["layer_weights_sd"] is None


def test_run_folder_is_healthy_and_complete(evaluated):
    document, store, _ = evaluated
    runs = list_runs(store)
    assert [run.status for run in runs] == ["done"] * 3
    assert not any(run.problem for run in runs)
    assert len({run.group for run in runs}) == 2
    run = load_run(store / document["rows"][1]["runs"][1])
    assert run.summary.name == "toy-learned-linear-s2"
    assert run.settings["evaluate.mix"] == "learned" and run.settings["evaluate.seed"] == 2
    extra = run.manifest["extra"]
    assert (extra["task"], extra["mix"], extra["x_k"], extra["head"]) == ("toy", "learned", True, "linear")
    assert extra["representation"] == "[x_k of the model 8; ELMo 16] -> 24"
    assert extra["labels"] == ["negative", "positive"]
    test, dev = run.results["metrics"]
    assert (test["split"], test["n"], test["higher_is_better"]) == ("test", 60, True)
    assert (dev["split"], dev["n"]) == ("dev", 40)
    assert test["low"] <= test["value"] <= test["high"]
    metrics = read_metrics(run.summary.folder)
    losses, devs = metrics[metrics["name"] == "loss"], metrics[metrics["split"] == "dev"]
    assert len(losses) == len(devs) == run.results["epochs"]
    assert devs["value"].max() == pytest.approx(dev["value"])
    assert devs["step"].iloc[run.results["best_epoch"] - 1] == dev["best_step"]


def test_predictions_give_the_score_and_name_the_examples(evaluated, data):
    document, store, _ = evaluated
    splits = TASK.load(data, store)
    for row in document["rows"]:
        frame = read_predictions(store / row["runs"][0])
        for split, part in (("dev", splits.dev), ("test", splits.test)):
            own = frame[frame["split"] == split]
            assert list(own["example_id"]) == [example.id for example in part]
            assert list(own["gold"]) == [example.label for example in part]
            assert list(own["text"]) == [" ".join(example.tokens) for example in part]
            probabilities = np.stack(own["probabilities"])
            np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-5)
            assert [TASK.labels[i] for i in probabilities.argmax(1)] == list(own["predicted"])
        test = frame[frame["split"] == "test"]
        assert (test["gold"] == test["predicted"]).mean() == pytest.approx(row["test_by_seed"][0])


def test_layers_go_from_equal_weights_to_the_mix_that_was_scored_with(evaluated):
    document, store, _ = evaluated
    histories = [read_layers(store / run) for run in document["rows"][1]["runs"]]
    for history in histories:
        assert history[0]["step"] == 0 and history[0]["gamma"] == 1
        assert history[0]["weights"] == pytest.approx([1 / 3] * 3)
        assert [entry["step"] for entry in history] == sorted(entry["step"] for entry in history)
        assert history[-1]["weights"] != pytest.approx([1 / 3] * 3, abs=1e-4)
    last = np.mean([history[-1]["weights"] for history in histories], 0)
    assert last == pytest.approx(document["rows"][1]["layer_weights"])
    assert read_layers(store / document["rows"][0]["runs"][0]) == []


def test_comparison_is_that_of_toolkit_compare(evaluated):
    document, store, _ = evaluated
    sides = [[summarise(store / run) for run in row["runs"]] for row in document["rows"]]
    (comparison,) = document["comparisons"]
    expected = compare_runs(*sides)
    assert comparison["sentence"] == expected.sentence
    assert comparison["n"] == 60
    table = score_table(runs_for_table(store))
    assert expected.sentence in evaluation_text([document], table)
    assert evaluation_text([document], table).endswith(table_text(table))


def test_table_says_what_its_figures_are(evaluated):
    document, store, _ = evaluated
    text = evaluation_text([document], score_table(runs_for_table(store)))
    assert "[x_k of the model 8; ELMo 16] -> 24" in text
    assert "±: half of the 95 % interval of TEST, over other test examples" in text


def test_one_score_has_one_interval_in_every_table_and_document(evaluated):
    document, store, _ = evaluated
    table = score_table(runs_for_table(store))
    of_run = {cell.runs: cell for cells in table.cells for cell in cells}
    for row in (*document["floors"], *document["rows"]):
        cell = of_run[tuple(row["runs"])]
        assert (row["low"], row["high"], row["interval"]) == (cell.low, cell.high, cell.interval)
        shown = f"{100 * row['test']:.1f} ± {50 * (row['high'] - row['low']):.1f}"
        sides = [summarise(store / run) for run in row["runs"]]
        assert shown in score_rows(sides, sides)[0][1]
    text = evaluation_text([document], table)
    assert "toy-none-linear" in text and "toy-learned-linear" in text


@pytest.mark.parametrize("head", ["linear", "bilstm"])
def test_equal_seeds_repeat_a_run_exactly(data, model, tmp_path, head):
    settings = settings_for(data, tmp_path, head=head, epochs=2, dropout=0.5)
    source = source_of(model, settings)
    first, again = (
        evaluate(TASK, source, settings, tmp_path / "runs", rerun=True)["rows"][0]["runs"][0] for _ in range(2)
    )
    left, right = (read_predictions(tmp_path / "runs" / run) for run in (first, again))
    np.testing.assert_array_equal(np.stack(left["probabilities"]), np.stack(right["probabilities"]))
    assert read_layers(tmp_path / "runs" / first) == read_layers(tmp_path / "runs" / again)
    other = evaluate(TASK, source, settings_for(data, tmp_path, head=head, epochs=2, seed=2), tmp_path / "runs")
    third = read_predictions(tmp_path / "runs" / other["rows"][0]["runs"][0])
    assert (np.stack(left["probabilities"]) != np.stack(third["probabilities"])).any()


def test_training_stops_after_patience_and_keeps_the_best_epoch(data, tmp_path):
    settings = settings_for(data, tmp_path, mix="none", patience=2, head="bilstm")
    source = LayerSource("drawn", "f" * 16, "warm", 3, 16, drawn)
    evaluate(TASK, source, settings, tmp_path / "runs")
    run = load_run(list_runs(tmp_path / "runs")[0].folder)
    results, dev = run.results, run.results["metrics"][1]
    assert results["epochs"] == min(20, results["best_epoch"] + 2)
    frame = read_predictions(run.summary.folder)
    own = frame[frame["split"] == "dev"]
    assert (own["gold"] == own["predicted"]).mean() == pytest.approx(dev["value"])
    assert dev["last"] < dev["value"]  # else the predictions of the last epoch would have passed, too


def test_layers_are_encoded_once_for_all_mixes_seeds_and_later_calls(data, model, tmp_path):
    settings = settings_for(data, tmp_path, mix="none,top", seeds=2, epochs=1)
    source, calls = counted(source_of(model, settings))
    for _ in range(2):
        evaluate(TASK, source, settings, tmp_path / "runs", rerun=True)
    assert len(calls) == 1
    evaluate(TASK, replace(source, state="zero"), settings, tmp_path / "runs")
    evaluate(TASK, replace(source, fingerprint="0" * 16), settings, tmp_path / "runs")
    assert len(calls) == 3


def test_cached_layers_are_the_encoders_in_float16(data, model, tmp_path):
    source = source_of(model, settings_for(data, tmp_path))
    sentences = [example.tokens for example in TASK.load(data, tmp_path).dev]
    features = features_of(sentences, source, "d" * 16, LayerCache(tmp_path / "layers", 10**9))
    batch, lengths = features.batch([3, 0])
    for place, row in enumerate((3, 0)):
        (expected,) = Encoder(model).encode([sentences[row]])
        assert lengths[place] == len(sentences[row])
        np.testing.assert_allclose(batch[place, : lengths[place]], expected.transpose(1, 0, 2), atol=2e-2, rtol=1e-3)
        assert not batch[place, lengths[place] :].any()


@pytest.mark.parametrize("damage", ["cut", "empty", "missing", "other shape"])
def test_damaged_cache_is_made_again(data, model, tmp_path, damage):
    source, calls = counted(source_of(model, settings_for(data, tmp_path)))
    sentences = [example.tokens for example in TASK.load(data, tmp_path).dev]
    whole = np.array(features_of(sentences, source, "d" * 16, LayerCache(tmp_path / "layers", 10**9)).layers)
    (path,) = tmp_path.glob("layers/*/layers.npy")
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "missing":
        path.unlink()
    else:
        np.save(path, whole[1:])
    again = features_of(sentences, source, "d" * 16, LayerCache(tmp_path / "layers", 10**9))
    np.testing.assert_array_equal(again.layers, whole)
    assert len(calls) == 2


def test_interrupted_encoding_leaves_nothing_behind(data, model, tmp_path):
    source = source_of(model, settings_for(data, tmp_path))

    def broken(sentences: Iterable[Sequence[str]]) -> Iterable[np.ndarray]:
        for number, layers in enumerate(source.encode(sentences)):
            if number == 5:
                raise KeyboardInterrupt
            yield layers

    sentences = [example.tokens for example in TASK.load(data, tmp_path).dev]
    with pytest.raises(KeyboardInterrupt):
        features_of(sentences, replace(source, encode=broken), "d" * 16, LayerCache(tmp_path / "layers", 10**9))
    assert [path for path in (tmp_path / "layers").iterdir() if path.is_dir()] == []


def test_vectors_that_float16_cannot_hold_are_refused(tmp_path):
    source = LayerSource("m", "f" * 16, "warm", 3, 4, lambda s: (np.full((3, len(t), 4), 1e6, np.float32) for t in s))
    with pytest.raises(FormatError, match="1e\\+06: not for float16"):
        features_of([("a", "b")], source, "d" * 16, LayerCache(tmp_path / "layers", 10**9))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"mix": "leraned"}, "did you mean 'learned'"),
        ({"mix": "none", "x_k": False}, "leaves no vector"),
        ({"mix": "layer:3"}, "layers 0 to 2"),
        ({"head": "lineer"}, "did you mean 'linear'"),
        ({"mix": "top,top"}, "twice"),
    ],
)
def test_wrong_settings_are_refused_before_a_run_starts(data, model, tmp_path, keys, message):
    settings = settings_for(data, tmp_path, **keys)
    with pytest.raises(UsageError, match=message):
        evaluate(TASK, source_of(model, settings), settings, tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_interrupted_training_leaves_a_stopped_run(data, model, tmp_path, monkeypatch):
    settings = settings_for(data, tmp_path, epochs=3)

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "predict", interrupted)
    with pytest.raises(KeyboardInterrupt):
        evaluate(TASK, source_of(model, settings), settings, tmp_path / "runs")
    assert [run.status for run in list_runs(tmp_path / "runs")] == ["stopped"]


def test_batches_hold_every_row_once_with_sentences_of_like_length():
    lengths = np.random.default_rng(0).integers(1, 60, 1000)
    rows = np.arange(100, 900)
    found = list(batches(rows, lengths, 32, np.random.default_rng(1)))
    assert sorted(np.concatenate(found)) == list(rows)
    padded = sum(len(batch) * lengths[batch].max() for batch in found)
    assert padded < 1.25 * lengths[rows].sum()
    others = list(batches(rows, lengths, 32, np.random.default_rng(2)))
    assert any(set(left) != set(right) for left, right in zip(found, others, strict=True))


def test_features_batch_counts_tokens():
    features = Features(np.ones((6, 3, 4), np.float16), np.array([0, 2, 6]))
    assert list(features.lengths) == [2, 4]
    batch, lengths = features.batch([0, 1])
    assert batch.shape == (2, 4, 3, 4) and list(lengths) == [2, 4]
