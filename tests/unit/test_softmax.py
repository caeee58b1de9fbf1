"""Sampled softmax beside TensorFlow's own, and the log-uniform sample."""

import numpy as np

from toolkit.bilm.backend import tf
from toolkit.bilm.softmax import full_softmax_nll, log_uniform_sample, sampled_softmax_loss

N, P, V, S = 6, 5, 40, 12


def problem(seed: int = 0):
    rng = np.random.default_rng(seed)
    h = tf.constant(rng.normal(size=(2, N, P)), tf.float32)
    weight = tf.constant(rng.normal(size=(V, P)), tf.float32)
    bias = tf.constant(rng.normal(size=V), tf.float32)
    return rng, h, weight, bias, rng.integers(0, V, (2, N)).astype(np.int32)


def test_loss_and_gradient_equal_those_of_tensorflow_on_the_same_candidates() -> None:
    _, h, weight, bias, targets = problem()
    draws = [log_uniform_sample(V, S, np.random.default_rng((1, d))) for d in range(2)]
    sampled, log_expected = np.stack([d[0] for d in draws]), np.stack([d[1] for d in draws])
    targets[0, 0] = sampled[0, 3]  # an accidental hit
    with tf.GradientTape() as tape:
        tape.watch([h, weight, bias])
        ours = sampled_softmax_loss(h, weight, bias, targets, sampled, log_expected)
    our_gradients = tape.gradient(ours, [h, weight, bias])
    with tf.GradientTape() as tape:
        tape.watch([h, weight, bias])
        losses = [
            tf.nn.sampled_softmax_loss(
                weight,
                bias,
                targets[d][:, None].astype(np.int64),
                h[d],
                S,
                V,
                sampled_values=(
                    sampled[d].astype(np.int64),
                    np.exp(log_expected[d][targets[d]])[:, None],
                    np.exp(log_expected[d][sampled[d]]),
                ),
            )
            for d in range(2)
        ]
        theirs = tf.reduce_mean(tf.stack(losses))
    their_gradients = tape.gradient(theirs, [h, weight, bias])
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    for a, b in zip(our_gradients, their_gradients, strict=True):
        np.testing.assert_allclose(a, tf.convert_to_tensor(b), atol=1e-6)


def test_with_all_words_as_candidates_the_sampled_loss_is_the_full_one() -> None:
    _, h, weight, bias, targets = problem(1)
    words, log_expected = log_uniform_sample(V, V, np.random.default_rng(0))
    loss = sampled_softmax_loss(h, weight, bias, targets, np.stack([words] * 2), np.stack([log_expected] * 2))
    full = [full_softmax_nll(h[d], weight, bias, targets[d]) for d in range(2)]
    np.testing.assert_allclose(loss, np.mean(full), rtol=1e-5)


def test_the_sample_is_distinct_and_as_frequent_as_it_says() -> None:
    counts, expected = np.zeros(V), np.zeros(V)
    for seed in range(3000):
        words, log_expected = log_uniform_sample(V, S, np.random.default_rng(seed))
        assert len(set(words.tolist())) == S
        counts[words] += 1
        expected += np.exp(log_expected)
    # 3000 draws: the standard error of a share is below 0.01.
    np.testing.assert_allclose(counts / 3000, expected / 3000, atol=0.04)
    assert counts[0] > counts[5] > counts[30]
