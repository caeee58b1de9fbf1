"""The hand-written gradient of an LSTM layer, and the training forward pass beside inference."""

import numpy as np
import pytest

from toolkit.bilm.backend import tf
from toolkit.bilm.char_cnn_groups import group_widths
from toolkit.bilm.lstm import clip, gates
from toolkit.bilm.lstm_training import training_layer
from toolkit.bilm.model import BiLM
from toolkit.bilm.spec import BiLMSpec
from toolkit.config import Pretrain
from toolkit.pretrain.graph import TrainingGraph
from toolkit.text.chars import char_rows

T, B = 5, 3


def spec(dim: int = 8, projection_dim: int = 4, skip: bool = True, clips: float | None = 0.3) -> BiLMSpec:
    return BiLMSpec(4, ((1, 3), (2, 5)), 1, "relu", 20, dim, projection_dim, 2, clips, clips, skip)


def plain_layer(spec: BiLMSpec, x, c, h, kernel, bias, *projection):
    """The same arithmetic step by step, differentiated automatically."""
    outputs = []
    for x_t in tf.unstack(x):
        *_, c, m = gates(tf.matmul(tf.concat([x_t, h], -1), kernel) + bias[:, None], c, spec.cell_clip)
        h = clip(tf.matmul(m, projection[0]), spec.proj_clip) if projection else m
        outputs.append(h)
    return tf.stack(outputs), c, h


@pytest.mark.parametrize("shape", [spec(), spec(clips=None), spec(dim=4, projection_dim=4)], ids=["P<D", "free", "P=D"])
def test_the_hand_written_gradient_equals_the_automatic_one(shape: BiLMSpec) -> None:
    rng = np.random.default_rng(3)
    draw = lambda *size: tf.constant(rng.normal(0, 0.7, size), tf.float32)  # noqa: E731
    d, p = shape.dim, shape.projection_dim
    weights = [draw(2, 2 * p, 4 * d), draw(2, 4 * d)] + ([draw(2, d, p)] if shape.has_projection else [])
    inputs = [draw(T, 2, B, p), draw(2, B, d), draw(2, B, p), *weights]
    upstream = draw(T, 2, B, p)
    gradients = []
    for layer in (training_layer(shape, T, tf.float32), lambda *a: plain_layer(shape, *a)):
        with tf.GradientTape() as tape:
            tape.watch([inputs[0], *weights])
            total = tf.reduce_sum(layer(*inputs)[0] * upstream)
        gradients.append(tape.gradient(total, [inputs[0], *weights]))
    for ours, automatic in zip(*gradients, strict=True):
        np.testing.assert_allclose(ours, automatic, atol=2e-5)


def test_clipping_was_active_in_that_comparison() -> None:
    rng = np.random.default_rng(3)
    draw = lambda *size: tf.constant(rng.normal(0, 0.7, size), tf.float32)  # noqa: E731
    s = spec()
    outputs, c, _ = plain_layer(
        s, draw(T, 2, B, 4), draw(2, B, 8), draw(2, B, 4), draw(2, 8, 32), draw(2, 32), draw(2, 8, 4)
    )
    assert np.isclose(np.abs(outputs), 0.3).any() and np.isclose(np.abs(c), 0.3).any()


@pytest.mark.parametrize("skip", [True, False])
def test_training_without_dropout_computes_what_inference_computes(skip: bool) -> None:
    shape = spec(skip=skip)
    bilm = BiLM(shape, seed=5)
    graph = TrainingGraph(bilm, 10, Pretrain(batch_size=B, unroll_steps=T), tf.float32)
    sentences = [["one", "two", "longer-word", "a", "b"], ["b", "a", "two", "one", "x"], ["x", "y", "z", "one", "two"]]
    words = sorted({word for sentence in sentences for word in sentence})
    groups = [np.empty((0, width), np.int32) for width in group_widths(shape)]
    groups[-1] = char_rows(words, shape.max_characters)
    places = np.array([[words.index(word) for word in sentence] for sentence in sentences])  # [B, T]
    # In training the backward rows are other text; here they are the same sentences from their ends.
    inputs = np.stack([places.T, places[:, ::-1].T], 1).astype(np.int32)
    top, states = graph.forward(tuple(groups), inputs, bilm.zero_state(B), None)
    x = tf.gather(bilm.token_vectors(groups[-1]), places)
    layers, expected_states = bilm.run_layers(x, [T] * B, bilm.zero_state(B))
    forward, backward = tf.unstack(tf.transpose(top, [1, 2, 0, 3]))
    np.testing.assert_allclose(tf.concat([forward, backward[:, ::-1]], -1), layers[-1], atol=1e-6)
    for ours, theirs in zip(states, expected_states, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_a_shorter_group_of_characters_gives_the_same_vectors() -> None:
    shape = spec()
    bilm = BiLM(shape, seed=2)
    rows = char_rows(["a", "word"], shape.max_characters)
    trimmed = rows[:, : 6 + shape.widest_filter]
    np.testing.assert_allclose(bilm.token_vectors(trimmed), bilm.token_vectors(rows), atol=1e-6)
