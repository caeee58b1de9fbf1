"""What every head must hold to; a new file in tasks/adapter/heads is tested without another line."""

import numpy as np
import pytest

from tasks.adapter.classifier import Classifier
from tasks.adapter.head import Head, all_heads, find_head
from tasks.adapter.representation import Representation
from toolkit.bilm.backend import tf
from toolkit.config import Evaluate
from toolkit.errors import UsageError

LENGTHS = np.array([7, 1, 4, 6], np.int32)
LAYERS, WIDTH, LABELS = 3, 8, 4
CASES = [(name, kind) for name, head in all_heads().items() for kind in head.kinds]


@pytest.fixture(params=CASES, ids="-".join)
def classifier(request) -> Classifier:
    return make(*request.param)


def make(head: str, kind: str, seed: int = 1, place: str = "input", mix: str = "learned") -> Classifier:
    representation = Representation.parse(mix, True, LAYERS, WIDTH, place=place)
    return Classifier(representation, find_head(head), LABELS, Evaluate(hidden=6), seed, kind)


def sentences(padded_to: int = 7, padding: float = 0.0) -> np.ndarray:
    layers = np.random.default_rng(0).normal(size=(4, 7, LAYERS, WIDTH)).astype(np.float32)
    batch = np.full((4, padded_to, LAYERS, WIDTH), padding, np.float32)
    for row, length in enumerate(LENGTHS):
        batch[row, :length] = layers[row, :length]
    return batch


def scores(classifier: Classifier, batch: np.ndarray, lengths: np.ndarray = LENGTHS, **more) -> np.ndarray:
    """The scores in rows: of tags those of the true tokens."""
    found = classifier(batch, lengths, **more).numpy()
    return found[np.arange(found.shape[1]) < lengths[:, None]] if classifier.kind == "tagging" else found


def test_scores_have_one_column_a_label(classifier):
    found = classifier(sentences(), LENGTHS)
    assert found.shape == {"sentence": (4, LABELS), "pair": (2, LABELS), "tagging": (4, 7, LABELS)}[classifier.kind]
    assert found.dtype == tf.float32


@pytest.mark.parametrize(("padded_to", "padding"), [(20, 0.0), (7, 50.0), (20, -50.0)])
def test_padding_never_changes_a_score(classifier, padded_to, padding):
    expected = scores(classifier, sentences())
    np.testing.assert_allclose(scores(classifier, sentences(padded_to, padding)), expected, atol=1e-5)


def test_batch_mates_never_change_a_score(classifier):
    together = classifier(sentences(), LENGTHS).numpy()
    for row in range(len(together)):
        rows = [row, row + 2] if classifier.kind == "pair" else [row]
        longest = LENGTHS[rows].max()
        alone = scores(classifier, sentences()[rows, :longest], LENGTHS[rows])
        expected = together[row, :longest] if classifier.kind == "tagging" else together[[row]]
        np.testing.assert_allclose(alone, expected, atol=1e-5)


def test_every_true_token_can_change_the_score(classifier):
    expected = scores(classifier, sentences())
    for position in range(LENGTHS[0]):
        changed = sentences()
        changed[0, position] *= -30.0
        assert np.abs(scores(classifier, changed) - expected).max() > 1e-4


def test_a_graph_gives_what_eager_gives(classifier):
    graph = tf.function(lambda layers, lengths: classifier(layers, lengths))
    np.testing.assert_allclose(graph(sentences(), LENGTHS), classifier(sentences(), LENGTHS), atol=1e-5)


def test_dropout_goes_on_where_its_variables_stood(classifier):
    """A training that was killed puts `variables` back; a head whose chance is elsewhere would go on otherwise."""
    stood = [variable.numpy() for variable in classifier.variables]
    first, second = (classifier(sentences(), LENGTHS, training=True).numpy() for _ in range(2))
    assert (first != second).any()
    for variable, value in zip(classifier.variables, stood, strict=True):
        variable.assign(value)
    np.testing.assert_array_equal(classifier(sentences(), LENGTHS, training=True), first)


@pytest.mark.parametrize(("place", "mix"), [("input", "learned"), ("both", "gated")])
@pytest.mark.parametrize(("head", "kind"), CASES)
def test_a_gradient_reaches_every_weight(head, kind, place, mix):
    if place == "both" and not find_head(head).has_output:
        pytest.skip("no states for a mix at the output")
    classifier = make(head, kind, place=place, mix=mix)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(classifier(sentences(), LENGTHS) ** 2)
    for variable, gradient in zip(
        classifier.trainable_variables, tape.gradient(loss, classifier.trainable_variables), strict=True
    ):
        assert gradient is not None, variable.path
        assert np.abs(tf.convert_to_tensor(gradient).numpy()).max() > 0, variable.path


def test_dropout_is_on_only_in_training(classifier):
    batch = sentences()
    np.testing.assert_array_equal(scores(classifier, batch), scores(classifier, batch))
    assert np.abs(scores(classifier, batch, training=True) - scores(classifier, batch)).max() > 1e-6


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_the_seed_decides_the_initial_weights(name, kind):
    first, again, other = (make(name, kind, seed)(sentences(), LENGTHS).numpy() for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-4


@pytest.mark.parametrize("name", [name for name, kind in CASES if kind == "pair"])
def test_a_word_in_question_is_looked_at_where_it_stands(name):
    if name == "bcn":
        pytest.skip("reads whole sentences")
    classifier = make(name, "pair")
    whole, first, second = (
        scores(classifier, sentences(), positions=np.array(places, np.int32))
        for places in ([-1, -1, -1, -1], [2, 0, 1, 1], [3, 0, 1, 1])
    )
    assert np.abs(first[0] - second[0]).max() > 1e-4 and np.abs(first - whole).max() > 1e-4
    np.testing.assert_allclose(first[1], second[1], atol=1e-5)


def test_every_kind_of_task_has_a_head():
    assert {kind for _, kind in CASES} == {"sentence", "pair", "tagging"}


def test_heads_are_found_by_their_files():
    assert {"bilstm", "linear", "cnn", "bcn", "pair", "tagger"} <= set(all_heads())
    assert all(issubclass(head, Head) for head in all_heads().values())


def test_unknown_head_names_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'bilstm'"):
        find_head("bi-lstm")
