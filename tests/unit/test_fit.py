"""The training loop on every kind of task: mixes that are found, weights of classes, folds, pairs and tags."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tasks.adapter.classifier import Classifier
from tasks.adapter.dataset import Dataset
from tasks.adapter.epochs import Fitted, Watch
from tasks.adapter.features import Features, LayerSource
from tasks.adapter.fit import fit, predict
from tasks.adapter.gates import distribution, gates_of_tokens
from tasks.adapter.head import find_head
from tasks.adapter.logistic import GRID, features
from tasks.adapter.representation import Representation
from tasks.adapter.rounds import Prepared
from tasks.adapter.run import run_seed
from tasks.adapter.step import label_weights
from tasks.task import Example, Kind, Task, in_folds
from toolkit.config import Evaluate, Settings
from toolkit.runs.reader import load_run, read_layers, read_predictions

LABELS = ("no", "yes", "maybe")
LAYERS, WIDTH = 3, 8
RNG = np.random.default_rng(0)
MEANS = {label: RNG.normal(0, 2, WIDTH) for label in LABELS}


def task_of(kind: Kind, metric: str = "accuracy", folds: int = 0) -> Task:
    return Task("toy", 1, "Toy", metric, LABELS, "none", "none", "none", {}, (), {}, kind, folds)


def made_up(kind: Kind, n: int) -> tuple[list[Example], Features]:
    """Examples whose layer 1 tells the label and whose other layers are noise."""
    rng = np.random.default_rng(1)
    examples, layers = [], []
    for number in range(n):
        sentences = [rng.integers(1, 9) for _ in range(2 if kind == "pair" else 1)]
        label = LABELS[number % 3 if kind != "pair" else number % 2]
        tokens = [("w",) * size for size in sentences]
        tags = tuple(rng.choice(LABELS, len(tokens[0]))) if kind == "tagging" else ()
        places = tuple(int(rng.integers(size)) for size in sentences) if kind == "pair" else None
        second = tokens[1] if kind == "pair" else ()
        examples.append(Example(str(number), tokens[0], "" if tags else label, second, places, tags))
        for turn, size in enumerate(sentences):
            found = rng.normal(size=(size, LAYERS, WIDTH))
            if kind == "pair":  # "yes" where the words in question are alike
                found[places[turn], 1] = MEANS["yes" if label == "yes" or turn else "no"]
            else:
                found[:, 1] += [MEANS[tag] for tag in tags] if tags else MEANS[label]
            layers.append(found.astype(np.float16))
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in layers])])
    return examples, Features(np.concatenate(layers), offsets)


def trained(kind: Kind, head: str, mix: str, metric: str = "accuracy", **keys) -> tuple[Classifier, Dataset, Fitted]:
    examples, layers = made_up(kind, 90)
    data = Dataset.of(task_of(kind, metric), examples, layers)
    keys = {"epochs": 12, "batch_size": 15, "learning_rate": 0.03, "dropout": 0.1, "hidden": 8} | keys
    settings = Evaluate(mix=mix, head=head, **keys)
    classifier = Classifier(
        Representation.parse(mix, False, LAYERS, WIDTH), find_head(head), len(LABELS), settings, 1, kind
    )
    rows = np.arange(90)
    return classifier, data, fit(classifier, data, rows[:60], rows[60:], settings, 1, Watch())


@pytest.mark.parametrize(
    ("kind", "head"),
    [
        pytest.param("pair", "pair", marks=pytest.mark.slow),
        ("pair", "linear"),
        ("tagging", "tagger"),
        ("tagging", "linear"),
    ],
)
def test_each_kind_of_task_is_learned_and_the_mix_finds_the_layer_that_knows(kind, head):
    _, _, fitted = trained(kind, head, "learned")
    assert fitted.best.dev_score > (0.75 if kind == "pair" else 0.85)
    weights, _ = fitted.best.mixes["input"]
    assert np.argmax(weights) == 1


def test_cnn_learns():
    assert trained("sentence", "cnn", "layer:1", epochs=4)[2].best.dev_score > 0.85


def test_tags_are_scored_by_the_metric_of_the_task():
    classifier, data, _ = trained("tagging", "linear", "layer:1")
    rows = np.arange(60, 90)
    found = predict(classifier, data, rows, 7)
    answers = data.answers(found)
    pairs = [(g.split("\t"), a.split("\t")) for g, a in zip(data.gold[rows], answers, strict=True)]
    assert all(len(g) == len(a) for g, a in pairs)
    right = [x == y for g, a in pairs for x, y in zip(g, a, strict=True)]
    assert data.score(rows, answers) == pytest.approx(np.mean(right))


def test_gates_weigh_each_token_and_have_a_distribution():
    classifier, data, fitted = trained("sentence", "linear", "gated")
    rows = np.arange(60, 90)
    (values,) = gates_of_tokens(classifier, data, rows, 11).values()
    assert values.shape == (data.lengths[rows].sum(), LAYERS)
    np.testing.assert_allclose(values.sum(1), 1, atol=1e-5)
    assert values.std(0).max() > 1e-3
    assert fitted.best.mixes["input"][0] == pytest.approx(values.mean(0).tolist(), abs=1e-4)
    found = distribution(values)
    assert found["tokens"] == len(values) and found["quantiles"]["50"] == pytest.approx(np.median(values, 0).tolist())


def test_mix_l2_holds_the_layers_near_equal_weights():
    free, held = (
        trained("sentence", "linear", "learned", mix_l2=strength)[2].best.mixes["input"][0] for strength in (0.0, 100.0)
    )
    assert free[1] > 0.4
    assert held == pytest.approx([1 / 3] * 3, abs=0.02)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_linear_head_is_scikit_learns_logistic_regression(n_labels):
    """On noise, where the strength matters; the labels of one split are those of the head and of scikit-learn."""
    rng = np.random.default_rng(5)
    layers = Features(rng.normal(size=(400, LAYERS, WIDTH)).astype(np.float16), np.arange(0, 401, 2))
    examples = [Example(str(n), ("a", "b"), LABELS[rng.integers(n_labels)]) for n in range(200)]
    data = Dataset.of(task_of("sentence"), examples, layers)
    settings = Evaluate(mix="average", head="linear")
    classifier = Classifier(
        Representation.parse("average", False, LAYERS, WIDTH), find_head("linear"), 3, settings, 1, "sentence"
    )
    train, dev = np.arange(100), np.arange(100, 200)
    fitted = fit(classifier, data, train, dev, settings, 1, Watch())
    x = layers.layers.astype(np.float64).mean(1).reshape(200, 2, WIDTH).mean(1)
    np.testing.assert_allclose(features(classifier, data, np.arange(200), 32), x, atol=1e-3)
    x = (x - x[train].mean(0)) / x[train].std(0)
    scores = []
    for strength, epoch in zip(GRID, fitted.history, strict=True):
        model = LogisticRegression(C=strength, max_iter=10_000, tol=1e-8).fit(x[train], data.targets[train])
        scores.append(model.score(x[dev], data.targets[dev]))
        assert (epoch.strength, epoch.dev_score) == (strength, pytest.approx(scores[-1], abs=0.011))
        if epoch is fitted.best:
            found = np.array(predict(classifier, data, dev, 32))[:, :n_labels]
            np.testing.assert_allclose(found, model.predict_proba(x[dev]), atol=5e-3)


def test_balanced_weights_give_every_class_the_same_sum():
    examples, layers = made_up("sentence", 9)
    data = Dataset.of(task_of("sentence"), examples, layers)
    train = np.array([0, 3, 6, 1])  # three "no", one "yes", no "maybe"
    weights = label_weights(data, train, Evaluate(class_weights="balanced"))
    assert 3 * weights[0] == pytest.approx(weights[1]) == pytest.approx(2.0)
    assert label_weights(data, train, Evaluate()).tolist() == [1, 1, 1]


def test_each_fold_is_predicted_by_the_round_that_did_not_train_on_it(tmp_path):
    examples, layers = made_up("sentence", 60)
    renamed = [Example(e.id, (e.id,) * len(e.tokens), e.label) for e in examples]
    splits = in_folds(renamed, "made up", 3)
    order = [int(example.id) for fold in splits.folds for example in fold]
    parts = [layers.layers[layers.offsets[row] : layers.offsets[row + 1]] for row in order]
    turned = Features(np.concatenate(parts), np.concatenate([[0], np.cumsum([len(part) for part in parts])]))
    task = task_of("sentence", "macro_f1", 3)
    data = Dataset.of(task, [e for fold in splits.folds for e in fold], turned)
    borders = np.cumsum([len(fold) for fold in splits.folds])[:-1]
    rows = dict(zip(splits.parts(), np.split(np.arange(60), borders), strict=True))
    source = LayerSource("drawn", "f" * 16, "warm", LAYERS, WIDTH, lambda sentences: [])
    settings = Settings.model_validate({"evaluate": {"mix": "learned", "head": "linear", "epochs": 2}})
    representation = Representation.parse("learned", False, LAYERS, WIDTH)
    outcome = run_seed(Prepared(task, splits, source, data, rows), representation, settings, 1, tmp_path)
    run, frame = load_run(outcome.folder), read_predictions(outcome.folder)
    for split in ("dev", "test"):
        assert sorted(frame[frame["split"] == split]["example_id"], key=int) == [str(n) for n in range(60)]
    assert run.results["rounds"] == 3 and run.results["metrics"][0]["name"] == "macro_f1"
    assert run.results["metrics"][0]["value"] > 0.8
    assert read_layers(outcome.folder)[0]["weights"] == pytest.approx([1 / 3] * 3)
