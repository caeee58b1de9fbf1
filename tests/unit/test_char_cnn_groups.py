"""The training token layer beside the plain one: same vectors, same gradients."""

import numpy as np
import pytest

from toolkit.bilm.backend import tf
from toolkit.bilm.char_cnn import CharCNN
from toolkit.bilm.char_cnn_groups import group_widths, grouped_token_vectors
from toolkit.bilm.spec import BiLMSpec
from toolkit.text.chars import PADDING, char_rows

LENGTH = 24
WORDS = {13: ["a", "of", "seven"], 15: ["sevens"], 20: ["twelve-bytes"], 24: ["x" * 30, "twenty-four-characters"]}


def groups(short: bool) -> list[tf.Tensor]:
    """Words by group, a row of padding behind each as batches have them; at the group's length or at the full one."""
    groups = []
    for width, words in WORDS.items():
        rows = np.concatenate([char_rows(words, LENGTH), np.full((1, LENGTH), PADDING)])
        groups.append(tf.constant(rows[:, :width] if short else rows, tf.int32))
    return groups


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("n_highway", [0, 2])
def test_training_and_plain_token_layers_agree_in_vectors_and_gradients(activation: str, n_highway: int) -> None:
    spec = BiLMSpec(
        char_dim=3,
        filters=((1, 4), (2, 5), (7, 6)),
        n_highway=n_highway,
        activation=activation,
        max_characters=LENGTH,
        dim=8,
        projection_dim=4,
        n_layers=1,
        cell_clip=None,
        proj_clip=None,
        skip=False,
    )
    assert set(WORDS) <= set(group_widths(spec))
    cnn, upstream = CharCNN(spec, np.random.default_rng(2)), np.random.default_rng(3)
    for bias in cnn.biases:  # zero at first, which would hide a bias that is added in the wrong place
        bias.assign(upstream.normal(0, 0.2, bias.shape))
    weight = upstream.normal(0, 1, (sum(len(words) + 1 for words in WORDS.values()), spec.projection_dim))
    results = []
    for vectors in (
        lambda: grouped_token_vectors(cnn, groups(short=True), tf.float32),
        lambda: tf.concat([cnn(ids) for ids in groups(short=False)], 0),
    ):
        with tf.GradientTape() as tape:
            out = vectors()
            total = tf.reduce_sum(out * weight)
        gradients = tape.gradient(total, cnn.trainable_variables)
        results.append([out, *(tf.convert_to_tensor(gradient) for gradient in gradients)])
    for ours, plain in zip(*results, strict=True):
        np.testing.assert_allclose(ours, plain, atol=2e-5)
