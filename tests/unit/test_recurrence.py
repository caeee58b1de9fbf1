"""The adapters' LSTM beside that of Keras: states, and the hand-written gradient."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tasks.adapter.recurrence import BiLSTM
from toolkit.bilm.backend import tf

B, F, H = 5, 6, 4


def keras_twin(layer: BiLSTM) -> tf.keras.layers.Layer:
    """Keras' layer with the same weights; its gates stand in the order i, f, j, o, and its forget bias is a weight."""
    forward, backward = (tf.keras.layers.LSTM(H, return_sequences=True, go_backwards=turn) for turn in (False, True))
    twin = tf.keras.layers.Bidirectional(forward, backward_layer=backward)
    twin.build((None, None, F))
    for n, own in enumerate((twin.forward_layer, twin.backward_layer)):
        bias = layer.biases[n].numpy()
        bias[2 * H : 3 * H] += 1
        parts = [np.split(part, 4, -1) for part in (layer.kernels[n].numpy(), layer.recurrences[n].numpy(), bias)]
        own.set_weights([np.concatenate([i, f, j, o], -1) for i, j, f, o in parts])
    return twin


@pytest.mark.parametrize("time", [1, 7, 20])
def test_states_and_gradients_are_those_of_keras(time):
    rng = np.random.default_rng(time)
    layer = BiLSTM(H, rng)
    x = tf.constant(rng.normal(size=(B, time, F)), tf.float32)
    lengths = tf.constant([time, *rng.integers(1, time + 1, B - 1)], tf.int32)
    mask = tf.sequence_mask(lengths, time)
    layer(x, lengths)
    layer.biases[0].assign(rng.normal(size=4 * H))
    twin = keras_twin(layer)
    upstream = tf.constant(rng.normal(size=(B, time, 2 * H)), tf.float32) * tf.cast(mask, tf.float32)[..., None]
    found = []
    for run, weights in ((lambda: layer(x, lengths), layer), (lambda: twin(x, mask=mask), twin)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            states = run()
            total = tf.reduce_sum(states * upstream)
        found.append((tf.boolean_mask(states, mask), tape.gradient(total, [x, *weights.trainable_variables])))
    (states, gradients), (expected, from_keras) = found
    np.testing.assert_allclose(states, expected, atol=1e-5)
    np.testing.assert_allclose(gradients[0], from_keras[0], atol=1e-5)
    norms = (sorted(float(tf.norm(g)) for g in side[1:]) for side in (gradients, from_keras))
    np.testing.assert_allclose(next(norms), next(norms), rtol=1e-4)


def test_training_products_are_close_to_those_of_float32():
    rng = np.random.default_rng(0)
    layer, x, lengths = BiLSTM(H, rng), rng.normal(size=(B, 9, F)).astype(np.float32), np.full(B, 9, np.int32)
    np.testing.assert_allclose(layer(x, lengths, training=True), layer(x, lengths), atol=0.02)


# XLA writes a file for each function that it compiles, but for its flags it looks once a process.
COMPILING = """
import numpy as np
from tasks.adapter.recurrence import BiLSTM
from toolkit.bilm.backend import tf

layer = BiLSTM(4, np.random.default_rng(0))
for time in (16, 3, 9, 15):
    with tf.GradientTape() as tape:
        states = layer(tf.ones([5, time, 6]), tf.fill([5], time), training=True)
    tape.gradient(states, layer.trainable_variables)
"""


def test_sentences_of_another_length_do_not_compile_again(tmp_path):
    environment = os.environ | {"XLA_FLAGS": f"--xla_dump_to={tmp_path}"}
    subprocess.run([sys.executable, "-c", COMPILING], env=environment, check=True, capture_output=True, timeout=120)
    compiled = sorted(path.name for path in tmp_path.glob("*.before_optimizations.txt"))
    assert len(compiled) == 4, compiled  # each direction forward and back
