"""What every head must hold to; a new file in tasks/adapter/heads is tested without another line."""

import numpy as np
import pytest

from tasks.adapter.classifier import Classifier
from tasks.adapter.head import Head, all_heads, find_head
from tasks.adapter.representation import Representation
from toolkit.bilm.backend import tf
from toolkit.config import Evaluate
from toolkit.errors import UsageError

LENGTHS = np.array([7, 1, 4], np.int32)
LAYERS, WIDTH, LABELS = 3, 8, 4


@pytest.fixture(params=sorted(all_heads()))
def classifier(request) -> Classifier:
    return make(request.param)


def make(head: str, seed: int = 1) -> Classifier:
    representation = Representation.parse("learned", True, LAYERS, WIDTH)
    return Classifier(representation, find_head(head), LABELS, Evaluate(hidden=6), seed)


def sentences(padded_to: int = 7, padding: float = 0.0) -> np.ndarray:
    layers = np.random.default_rng(0).normal(size=(3, 7, LAYERS, WIDTH)).astype(np.float32)
    batch = np.full((3, padded_to, LAYERS, WIDTH), padding, np.float32)
    for row, length in enumerate(LENGTHS):
        batch[row, :length] = layers[row, :length]
    return batch


def test_scores_have_one_column_a_label(classifier):
    scores = classifier(sentences(), LENGTHS)
    assert scores.shape == (3, LABELS)
    assert scores.dtype == tf.float32


@pytest.mark.parametrize(("padded_to", "padding"), [(20, 0.0), (7, 50.0), (20, -50.0)])
def test_padding_never_changes_a_score(classifier, padded_to, padding):
    expected = classifier(sentences(), LENGTHS)
    np.testing.assert_allclose(classifier(sentences(padded_to, padding), LENGTHS), expected, atol=1e-5)


def test_batch_mates_never_change_a_score(classifier):
    together = classifier(sentences(), LENGTHS).numpy()
    for row, length in enumerate(LENGTHS):
        alone = classifier(sentences()[row : row + 1, :length], LENGTHS[row : row + 1])
        np.testing.assert_allclose(alone[0], together[row], atol=1e-5)


def test_every_true_token_can_change_the_score(classifier):
    expected = classifier(sentences(), LENGTHS).numpy()
    for position in range(LENGTHS[0]):
        changed = sentences()
        changed[0, position] *= -30.0
        assert np.abs(classifier(changed, LENGTHS)[0] - expected[0]).max() > 1e-4


def test_a_graph_gives_what_eager_gives(classifier):
    graph = tf.function(lambda layers, lengths: classifier(layers, lengths))
    np.testing.assert_allclose(graph(sentences(), LENGTHS), classifier(sentences(), LENGTHS), atol=1e-5)


def test_a_gradient_reaches_every_weight(classifier):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(classifier(sentences(), LENGTHS) ** 2)
    for variable, gradient in zip(
        classifier.trainable_variables, tape.gradient(loss, classifier.trainable_variables), strict=True
    ):
        assert gradient is not None, variable.path
        assert np.abs(gradient.numpy()).max() > 0, variable.path


def test_dropout_is_on_only_in_training(classifier):
    batch = sentences()
    np.testing.assert_array_equal(classifier(batch, LENGTHS), classifier(batch, LENGTHS))
    assert np.abs(classifier(batch, LENGTHS, training=True) - classifier(batch, LENGTHS)).max() > 1e-6


@pytest.mark.parametrize("name", sorted(all_heads()))
def test_the_seed_decides_the_initial_weights(name):
    first, again, other = (make(name, seed)(sentences(), LENGTHS).numpy() for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-4


def test_heads_are_found_by_their_files():
    assert {"bilstm", "linear"} <= set(all_heads())
    assert all(issubclass(head, Head) for head in all_heads().values())


def test_unknown_head_names_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'bilstm'"):
        find_head("bi-lstm")
