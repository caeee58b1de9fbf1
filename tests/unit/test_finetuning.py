"""Fine-tuning: the biLM's weights learn with the head at a rate of their own; frozen ones stay as they were."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tasks.adapter.classifier import Classifier
from tasks.adapter.dataset import Dataset
from tasks.adapter.describe import evaluation_text
from tasks.adapter.epochs import Watch
from tasks.adapter.evaluate import evaluate, source_of
from tasks.adapter.features import Features
from tasks.adapter.finetuning import Sentences, bilm_below, check_finetuning, weights_told
from tasks.adapter.fit import fit
from tasks.adapter.head import find_head
from tasks.adapter.prepare import representations_of
from tasks.adapter.representation import Representation
from tasks.adapter.step import label_weights, parts_of, train_step
from tasks.own_data import Given
from tasks.task import Example, Kind, Splits, Task
from toolkit.bilm.backend import tf
from toolkit.bilm.folder import Model, load_model
from toolkit.config import Evaluate, Settings
from toolkit.errors import UsageError
from toolkit.files import fingerprint
from toolkit.runs import schema
from toolkit.runs.reader import list_runs, load_run, read_predictions
from toolkit.runs.table import runs_for_table, score_table

WORDS = ("the", "of", "was", "in", "a", "to")
LABELS = ("negative", "positive")


def examples(name: str, count: int, kind: Kind = "sentence") -> list[Example]:
    rng = np.random.default_rng(list(name.encode()))
    found = []
    for number in range(count):
        label = LABELS[number % 2]
        tokens = tuple([*rng.choice(WORDS, rng.integers(1, 6)), "bank" if number % 2 else "money"])
        second = tuple(rng.choice(WORDS, 2)) if kind == "pair" else ()
        tags = tuple(rng.choice(LABELS, len(tokens))) if kind == "tagging" else ()
        found.append(Example(f"{name}-{number}", tokens, "" if tags else label, second, None, tags))
    return found


def task_of(splits: Splits | None = None, kind: Kind = "sentence") -> Task:
    places = ((Given(Path()), lambda path: splits),)
    return Task("toy", 1, "Toy", "accuracy", LABELS, "none", "none", "none", {}, places, {}, kind)


TOY = task_of(Splits(examples("train", 64), examples("dev", 24), examples("test", 24), "made up"))


@pytest.fixture(scope="module")
def model(tiny_model) -> Model:
    return load_model(tiny_model)


def settings_for(root: Path, state: str = "warm", **keys: object) -> Settings:
    chosen = {
        "word_vectors": "model",
        "head": "cnn",
        "mix": "learned",
        "hidden": 8,
        "epochs": 2,
        "batch_size": 16,
        "dropout": 0.1,
    } | keys
    return Settings.model_validate({"paths": {"cache": root / "cache"}, "embed": {"state": state}, "evaluate": chosen})


def pair_of(model: Model, kind: Kind, head: str, mix: str, state: str = "warm", **keys: object):
    """A classifier on cached layers and one on sentences with equal weights, each with its data."""
    settings = settings_for(Path(), state, mix=mix, head=head, **keys)
    source = source_of(model, settings)
    all_examples = examples("both", 12, kind)
    sentences = [tokens for example in all_examples for tokens in example.sentences]
    layers = [one.transpose(1, 0, 2).astype(np.float16) for one in source.encode(sentences)]
    features = Features(np.concatenate(layers), np.concatenate([[0], np.cumsum([len(one) for one in layers])]))
    (representation,) = representations_of(source, settings.evaluate)
    found = []
    for bilm, given in ((None, features), (bilm_below(source), Sentences(sentences))):
        own = representation, find_head(head), len(LABELS), settings.evaluate, 1, kind
        found.append((Classifier(*own, bilm=bilm), Dataset.of(task_of(kind=kind), all_examples, given)))
    return found


@pytest.mark.parametrize(
    ("kind", "head", "mix", "state"),
    [("sentence", "cnn", "learned", "zero"), ("pair", "pair", "top", "warm"), ("tagging", "tagger", "gated", "warm")],
)
def test_before_training_scores_are_those_of_the_frozen_layers(model, kind, head, mix, state):
    (frozen, layers), (tuned, sentences) = pair_of(model, kind, head, mix, state)
    rows = np.arange(12)
    for one, two in zip(
        layers.apply(frozen.probabilities, rows, 5), sentences.apply(tuned.probabilities, rows, 12), strict=True
    ):
        np.testing.assert_allclose(one, two, atol=2e-3)  # the cache holds float16
    assert tuned.bilm.fingerprint() == model.fingerprint


def test_each_state_of_a_sentences_start_is_that_of_the_frozen_layers(model):
    sentences, found = [("the", "bank"), ("money", "was", "in", "the", "river")], {}
    tokens, lengths = Sentences(sentences).batch(np.arange(2))
    for state in ("warm", "zero"):
        source = source_of(model, settings_for(Path(), state))
        found[state] = bilm_below(source)(tf.constant(tokens)).numpy()
        for row, expected in enumerate(source.encode(sentences)):
            own = found[state][row, : lengths[row]].transpose(1, 0, 2)
            np.testing.assert_allclose(own, expected, atol=1e-6)
    assert np.abs(found["warm"] - found["zero"]).max() > 1e-4


def test_the_weights_of_the_bilm_that_were_best_on_dev_are_kept(model):
    _, (classifier, data) = pair_of(model, "sentence", "cnn", "learned")
    marks: list[str] = []
    watch = Watch(on_epoch=lambda epoch: marks.append(classifier.bilm.fingerprint()))
    settings = Evaluate(finetune_rate=0.02, epochs=4, patience=4, batch_size=4)
    fitted = fit(classifier, data, np.arange(8), np.arange(8, 12), settings, 1, watch)
    assert len(set(marks)) == 4 > fitted.best.number
    assert classifier.bilm.fingerprint() == marks[fitted.best.number - 1]


def moved(classifier: Classifier, data: Dataset, parts: list, clip_norm: float) -> list[float]:
    """How far one step moves each weight at most."""
    variables = classifier.trainable_variables
    before = [variable.numpy().copy() for variable in variables]
    rows, settings = np.arange(12), Evaluate(clip_norm=clip_norm)
    step = train_step(classifier, parts, settings, label_weights(data, rows, settings))
    step(*data.batch(rows), data.targets_of(rows))
    return [float(np.abs(v.numpy() - b).max()) for v, b in zip(variables, before, strict=True)]


@pytest.mark.parametrize("mix", ["learned", "none"])
def test_every_part_of_the_bilm_that_is_used_learns_at_its_own_rate(model, mix):
    _, (classifier, data) = pair_of(model, "sentence", "cnn", mix)
    found = moved(classifier, data, parts_of(classifier, Evaluate(learning_rate=1e-2, finetune_rate=1e-3)), 1e3)
    below = {id(variable) for variable in classifier.bilm.trainable_variables}
    lstm = {id(weight) for layer in classifier.bilm.bilm.layers for weight in layer.variables}
    assert len(below) == len(classifier.bilm.bilm.variables) and len(lstm) == 6
    for variable, distance in zip(classifier.trainable_variables, found, strict=True):
        # Adam's first step is the rate, whatever the gradient; x_k alone asks nothing of the LSTMs.
        expected = 1e-3 if id(variable) in below else 1e-2
        unused = mix == "none" and id(variable.value) in lstm
        assert distance == 0 if unused else 0.7 * expected < distance < 1.01 * expected, variable.path


def test_the_gradient_is_clipped_over_head_and_bilm_together(model):
    _, (classifier, data) = pair_of(model, "sentence", "cnn", "learned")
    before = [variable.numpy().copy() for variable in classifier.trainable_variables]
    parts = [
        (tf.keras.optimizers.SGD(1.0), variables) for _, variables in parts_of(classifier, Evaluate(finetune_rate=1))
    ]
    moved(classifier, data, parts, 0.01)
    after = [variable.numpy() for variable in classifier.trainable_variables]
    squares = sum(float(np.square(b - a).sum()) for a, b in zip(after, before, strict=True))
    assert squares**0.5 == pytest.approx(0.01, rel=1e-3)


@pytest.mark.slow
def test_a_tuned_run_tells_its_rate_and_checksums_and_leaves_the_model_as_it_was(model, tmp_path):
    settings = settings_for(tmp_path, finetune_rate=0.01, epochs=3, learning_rate=0.05, seeds=2)
    document = evaluate(TOY, source_of(model, settings), settings, tmp_path / "runs")
    (row,) = document["rows"]
    told = row["bilm"]
    assert (told["fine_tuned"], told["learning_rate"]) == (True, 0.01)
    assert told["checksum_before"] == model.fingerprint == load_model(model.path).fingerprint
    assert len(set(told["checksums_after"]) - {model.fingerprint}) == 2
    for run in list_runs(tmp_path / "runs"):
        results, frame = load_run(run.folder).results, read_predictions(run.folder)
        assert results["bilm"]["checksums_after"][0] in told["checksums_after"]
        dev = frame[frame["split"] == "dev"]
        assert (dev["gold"] == dev["predicted"]).mean() == pytest.approx(results["metrics"][1]["value"])
        assert "tuned-0.01" in run.name
    alone = settings_for(tmp_path, finetune_rate=0.01, epochs=3, learning_rate=0.05, seed=2)
    (other,) = evaluate(TOY, source_of(model, alone), alone, tmp_path / "alone")["rows"]
    assert other["bilm"]["checksums_after"][0] == told["checksums_after"][1]  # not tuned on by the next seed
    text = evaluation_text([document], score_table(runs_for_table(tmp_path / "runs")))
    assert f"The biLM was fine-tuned with the head, at the rate 0.01: its checksum was {model.fingerprint}" in text
    assert not (tmp_path / "cache").exists()


def test_a_frozen_run_has_the_same_checksum_before_and_after(model, tmp_path):
    settings = settings_for(tmp_path, epochs=1)
    document = evaluate(TOY, source_of(model, settings), settings, tmp_path / "runs")
    told = load_run(list_runs(tmp_path / "runs")[0].folder).results["bilm"]
    mark = model.fingerprint
    expected = {"fine_tuned": False, "learning_rate": 0.0, "checksum_before": mark, "checksums_after": [mark]}
    assert told == expected == document["rows"][0]["bilm"]


def test_the_checksum_after_is_that_of_the_weights_as_they_are(tiny_model):
    model = load_model(tiny_model)
    source = source_of(model, Settings())
    model.bilm.layers[1].bias.assign_add(tf.fill(model.bilm.layers[1].bias.shape, 1e-3))
    told = weights_told(source, 0.0, [])
    assert told["checksums_after"] != [told["checksum_before"]]


@pytest.mark.parametrize(
    ("keys", "of_source", "message"),
    [
        ({}, {"model": None}, "holds vectors and no biLM to train"),
        ({"head": "linear"}, {}, "head 'linear' is solved on fixed vectors"),
        ({}, {"state": "stateful"}, "take warm or zero"),
        ({}, {"compute": "bfloat16"}, "leave embed.compute=bfloat16 out"),
        ({"mix": "learned,none", "word_vectors": "trained:8"}, {}, "leaves nothing of the biLM"),
    ],
)
def test_what_cannot_be_fine_tuned_is_refused_before_anything_is_trained(model, tmp_path, keys, of_source, message):
    settings = settings_for(tmp_path, finetune_rate=1e-3, **keys)
    source = replace(source_of(model, settings), **of_source)
    with pytest.raises(UsageError, match=f"task 'toy': evaluate.finetune_rate is above 0.*{message}"):
        evaluate(TOY, source, settings, tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
    frozen = settings.evaluate.model_copy(update={"finetune_rate": 0.0})
    check_finetuning(source, [Representation.parse("top", True, source.n_layers, source.width)], frozen)


def test_another_rate_is_another_experiment_and_none_is_what_runs_were_before_there_was_one():
    groups = {
        rate: schema.group_of("evaluate", settings_for(Path(), finetune_rate=rate), "toy", "m", "d")
        for rate in (0.0, 1e-4, 1e-3)
    }
    assert len(set(groups.values())) == 3
    flat = {f"{s}.{k}": v for s, t in settings_for(Path()).model_dump(mode="json").items() for k, v in t.items()}
    flat = schema.relevant_settings("evaluate", flat)
    del flat["evaluate.finetune_rate"]
    assert groups[0.0] == fingerprint(["evaluate", flat, "toy", "m", "d"])
