"""Representations: what stands for a token, in numbers, and what the words of a mix mean."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.adapter.classifier import Classifier
from tasks.adapter.head import find_head
from tasks.adapter.mixing import GatedMix
from tasks.adapter.representation import Representation, split_mixes
from toolkit.bilm.backend import tf
from toolkit.config import Evaluate
from toolkit.errors import UsageError
from toolkit.keras.scalar_mix import ScalarMix

LAYERS, WIDTH = 3, 8


def layers_of(seed: int = 0) -> np.ndarray:
    """Layers [2, 5, 3, 8] whose bottom layer holds the token vector twice, as an encoder gives them."""
    layers = np.random.default_rng(seed).normal(size=(2, 5, LAYERS, WIDTH)).astype(np.float32)
    layers[:, :, 0, WIDTH // 2 :] = layers[:, :, 0, : WIDTH // 2]
    return layers


def vectors(mix: str, x_k: bool, layers: np.ndarray) -> np.ndarray:
    representation = Representation.parse(mix, x_k, LAYERS, WIDTH)
    result = Classifier(representation, find_head("linear"), 2, Evaluate(), seed=1).vectors(tf.constant(layers))
    assert result.shape[-1] == representation.size
    return result.numpy()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-5, 5, width=32), min_size=3, max_size=3), st.floats(-3, 3, width=32), st.integers(0, 99))
def test_learned_mix_is_equation_1_of_the_paper(raw, gamma, seed):
    layers, mix = layers_of(seed), ScalarMix(LAYERS)
    mix.raw.assign(raw)
    mix.gamma.assign(gamma)
    shares = np.exp(np.array(raw, np.float64) - max(raw))
    shares /= shares.sum()
    expected = gamma * sum(share * layers[:, :, j] for j, share in enumerate(shares))
    np.testing.assert_allclose(mix(tf.constant(layers)), expected, atol=1e-4)
    np.testing.assert_allclose(mix.weights_of_layers(), shares, atol=1e-6)


def test_learned_mix_starts_as_the_average():
    layers = layers_of()
    np.testing.assert_allclose(vectors("learned", False, layers), layers.mean(2), atol=1e-6)


def test_penalty_is_the_sum_of_squares_of_the_raw_weights():
    mix = ScalarMix(LAYERS, l2_coef=0.5)
    mix.raw.assign([1.0, -2.0, 3.0])
    assert float(sum(mix.losses)) == pytest.approx(7.0)
    assert not ScalarMix(LAYERS).losses and not ScalarMix(LAYERS, l2_coef=0.5, top_only=True).losses


# The weights and gammas that bilm-tf's own test of `weight_layers` uses.
PUBLISHED = [((0.1, 0.3, 0.5), 1.1), ((0.2, 0.4, 0.6), 0.88)]
MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]], bool)


@pytest.mark.parametrize(("raw", "gamma"), PUBLISHED)
@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("top_only", [False, True])
def test_mix_is_bilm_tfs_weight_layers(raw, gamma, layer_norm, top_only):
    """Softmax of w + 1 / (L+1); the layer norm has one mean and one variance a layer over the unmasked positions."""
    layers = np.random.default_rng(3).normal(1.5, 2.0, (3, 4, LAYERS, WIDTH)).astype(np.float32)
    mix = ScalarMix(LAYERS, layer_norm=layer_norm, top_only=top_only)
    mix.gamma.assign(gamma)
    shares = np.eye(LAYERS)[-1]
    if not top_only:
        mix.raw.assign(raw)
        shares = np.exp(np.array(raw) + 1 / 3) / np.exp(np.array(raw) + 1 / 3).sum()
    expected = np.zeros((3, 4, WIDTH))
    for j, share in enumerate(shares):
        layer = layers[:, :, j].astype(np.float64)
        if layer_norm:
            inside = layer[MASK]
            layer = (layer - inside.mean()) / np.sqrt(inside.var() + 1e-12)
        expected += gamma * share * layer
    found = mix(tf.constant(layers), mask=tf.constant(MASK)).numpy()
    np.testing.assert_allclose(found[MASK], expected[MASK], atol=1e-6, rtol=1e-6)
    assert len(mix.trainable_variables) == (1 if top_only else 2)


def test_layer_norm_of_nothing_but_padding_is_finite():
    layers, mix = tf.ones((1, 2, LAYERS, WIDTH)), ScalarMix(LAYERS, layer_norm=True)
    assert np.isfinite(mix(layers, mask=tf.zeros((1, 2), tf.bool))).all()


@pytest.mark.parametrize(
    ("mix", "weights"),
    [
        ("layer:0", (1, 0, 0)),
        ("layer:1", (0, 1, 0)),
        ("top", (0, 0, 1)),
        ("average", (1 / 3, 1 / 3, 1 / 3)),
        ("fixed:0.5,-1,2", (0.5, -1, 2)),
    ],
)
def test_fixed_mixes_weigh_the_layers_as_they_say(mix, weights):
    layers = layers_of()
    expected = sum(weight * layers[:, :, j] for j, weight in enumerate(weights))
    np.testing.assert_allclose(vectors(mix, False, layers), expected, atol=1e-5)


@pytest.mark.parametrize("mix", ["top", "learned", "average"])
def test_x_k_stands_in_front_of_the_mix_and_is_the_first_half_of_layer_0(mix):
    layers = layers_of()
    both = vectors(mix, True, layers)
    np.testing.assert_array_equal(both[..., : WIDTH // 2], layers[:, :, 0, : WIDTH // 2])
    np.testing.assert_allclose(both[..., WIDTH // 2 :], vectors(mix, False, layers), atol=1e-6)


def test_concat_puts_all_layers_side_by_side():
    layers = layers_of()
    np.testing.assert_array_equal(vectors("concat", False, layers), layers.reshape(2, 5, LAYERS * WIDTH))


def test_gated_mix_starts_as_the_average_and_then_weighs_each_token():
    layers, mix = layers_of(), GatedMix(LAYERS, 0.5)
    np.testing.assert_allclose(mix(tf.constant(layers)), layers.mean(2), atol=1e-6)
    kernel = np.random.default_rng(4).normal(size=(LAYERS * WIDTH, LAYERS))
    mix.gate.set_weights([kernel, np.zeros(LAYERS)])
    mix.gamma.assign(2.0)
    scores = np.exp(layers.reshape(2, 5, -1) @ kernel)
    expected = 2 * np.einsum("btlw,btl->btw", layers, scores / scores.sum(-1, keepdims=True))
    np.testing.assert_allclose(mix(tf.constant(layers)), expected, atol=1e-4)
    assert float(sum(mix.losses)) == pytest.approx(0.5 * (kernel**2).sum(), rel=1e-5)


@pytest.mark.parametrize(
    ("place", "text"), [("output", "[x_k 4] -> 4, output [ELMo 8]"), ("both", "[x_k 4; ELMo 8] -> 12, output [ELMo 8]")]
)
def test_a_mix_may_stand_at_the_output_with_weights_of_its_own(place, text):
    representation = Representation.parse("learned", True, LAYERS, WIDTH, place=place)
    assert representation.shape_text == text
    classifier = Classifier(representation, find_head("bilstm"), 2, Evaluate(hidden=3), seed=1)
    assert len(set(map(id, classifier.mixes.values()))) == len(representation.places)
    before = classifier(layers_of(), np.array([5, 2], np.int32)).numpy()
    classifier.mixes["output"].gamma.assign(-3.0)
    assert np.abs(classifier(layers_of(), np.array([5, 2], np.int32)) - before).max() > 1e-3
    assert classifier.weights_by_place()["output"][1] == -3
    with pytest.raises(UsageError, match="leaves the input without a vector"):
        Representation.parse("learned", False, LAYERS, WIDTH, place="output")


def test_none_is_x_k_alone():
    layers = layers_of()
    np.testing.assert_array_equal(vectors("none", True, layers), layers[:, :, 0, : WIDTH // 2])


def test_a_forward_model_has_its_token_vector_once():
    layers = np.random.default_rng(0).normal(size=(2, 5, LAYERS, WIDTH)).astype(np.float32)
    representation = Representation.parse("top", True, LAYERS, WIDTH, directions=1)
    assert representation.shape_text == "[x_k 8; ELMo 8] -> 16"
    result = Classifier(representation, find_head("linear"), 2, Evaluate(), seed=1).vectors(tf.constant(layers))
    np.testing.assert_array_equal(result, np.concatenate([layers[:, :, 0], layers[:, :, -1]], -1))


@pytest.mark.parametrize(
    ("mix", "x_k", "text"),
    [
        ("learned", True, "[x_k 128; ELMo 256] -> 384"),
        ("none", True, "[x_k 128] -> 128"),
        ("top", False, "[ELMo 256] -> 256"),
        ("concat", True, "[x_k 128; ELMo 768] -> 896"),
        ("gated", False, "[ELMo 256] -> 256"),
    ],
)
def test_shape_text_says_what_stands_where(mix, x_k, text):
    assert Representation.parse(mix, x_k, 3, 256).shape_text == text


@pytest.mark.parametrize(
    ("mix", "x_k", "message"),
    [
        ("leraned", True, "did you mean 'learned'"),
        ("layer:3", True, "layers 0 to 2"),
        ("layer:-1", True, "layers 0 to 2"),
        ("layer:", True, "unknown mix"),
        ("fixed:1,2", True, "3 numbers"),
        ("fixed:1,2,nan", True, "3 numbers"),
        ("none", False, "leaves no vector"),
        ("", True, "unknown mix"),
    ],
)
def test_wrong_mix_is_a_usage_error_that_says_what_would_do(mix, x_k, message):
    with pytest.raises(UsageError, match=message):
        Representation.parse(mix, x_k, LAYERS, WIDTH)


@pytest.mark.parametrize(
    ("text", "mixes"),
    [
        ("none,learned", ["none", "learned"]),
        (" none , learned ", ["none", "learned"]),
        ("fixed:1,2,3,top", ["fixed:1,2,3", "top"]),
        ("fixed:1,2,3,fixed:0,0,1", ["fixed:1,2,3", "fixed:0,0,1"]),
    ],
)
def test_commas_part_mixes_but_not_the_numbers_of_one(text, mixes):
    assert split_mixes(text) == mixes


@pytest.mark.parametrize("text", ["", ",", "top,top"])
def test_no_mix_or_one_twice_is_refused(text):
    with pytest.raises(UsageError):
        split_mixes(text)
