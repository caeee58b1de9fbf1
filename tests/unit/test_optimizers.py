"""The optimizers of pretraining next to those of Keras, and what they do with rows of tables."""

import keras
import numpy as np
import pytest

from toolkit.bilm.backend import tf
from toolkit.config import Pretrain
from toolkit.pretrain.averages import EVERY, Averages
from toolkit.pretrain.optimizers import OPTIMIZERS, Adam

RATE = 0.05
RNG = np.random.default_rng(0)


def made(name: str, *values: np.ndarray):
    variables = [tf.Variable(value.astype(np.float32)) for value in values]
    return variables, OPTIMIZERS[name](variables, Pretrain(optimizer=name))


def gradients(count: int, *shape: int) -> list[np.ndarray]:
    return [RNG.normal(size=shape).astype(np.float32) for _ in range(count)]


ORACLES = {
    "adam": lambda: keras.optimizers.Adam(RATE, 0.9, 0.99, 1e-8),
    "adagrad": lambda: keras.optimizers.Adagrad(RATE, initial_accumulator_value=1.0, epsilon=0.0),
}


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_a_dense_variable_moves_as_keras_moves_it(name) -> None:
    start = RNG.normal(size=(4, 3))
    (ours,), optimizer = made(name, start)
    theirs, oracle = keras.Variable(start.astype(np.float32)), ORACLES[name]()
    for step, gradient in enumerate(gradients(20, 4, 3)):
        optimizer.update(0, ours, tf.constant(gradient), tf.constant(RATE), tf.constant(step, tf.int64))
        oracle.apply([tf.constant(gradient)], [theirs])
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)
    assert np.abs(ours.numpy() - start).max() > 0.05


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
@pytest.mark.parametrize("shape", [(6, 3), (6,)], ids=["weight", "bias"])
def test_all_rows_touched_is_the_dense_update_and_an_untouched_row_stays(name, shape) -> None:
    start = RNG.normal(size=shape)
    (table, whole), optimizer = made(name, start, start[1:4])
    rows = tf.constant([1, 2, 3])
    for step, gradient in enumerate(gradients(8, 3, *shape[1:])):
        count = tf.constant(step, tf.int64)
        optimizer.update_rows(0, table, tf.constant(gradient), rows, tf.constant(RATE), count)
        optimizer.update(1, whole, tf.constant(gradient), tf.constant(RATE), count)
    np.testing.assert_allclose(table.numpy()[1:4], whole.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(table.numpy()[[0, 4, 5]], start.astype(np.float32)[[0, 4, 5]])


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_rows_that_only_fill_up_a_shape_change_nothing(name) -> None:
    start = RNG.normal(size=(5, 2))
    (plain,), one = made(name, start)
    (filled,), other = made(name, start)
    for step, gradient in enumerate(gradients(6, 3, 2)):
        count, rate = tf.constant(step, tf.int64), tf.constant(RATE)
        one.update_rows(0, plain, tf.constant(gradient), tf.constant([0, 2, 4]), rate, count)
        padded = tf.constant(np.concatenate([gradient, np.zeros((4, 2), np.float32)]))
        other.update_rows(0, filled, padded, tf.constant([0, 2, 4, 0, 0, 0, 0]), rate, count)
    np.testing.assert_allclose(filled.numpy(), plain.numpy(), rtol=1e-6)
    for name_of_slot, slots in one.slots.items():
        np.testing.assert_allclose(other.slots[name_of_slot][0].numpy(), slots[0].numpy(), rtol=1e-6)


def test_moments_of_a_row_wait_for_its_next_gradient() -> None:
    (table,), adam = made("adam", np.zeros((2, 2)))
    for step in range(3):
        gradient = tf.ones((1, 2))
        adam.update_rows(0, table, gradient, tf.constant([step % 2]), tf.constant(RATE), tf.constant(step, tf.int64))
    assert isinstance(adam, Adam)
    np.testing.assert_allclose(adam.slots["means"][0].numpy(), [[0.19, 0.19], [0.1, 0.1]], rtol=1e-6)
    np.testing.assert_allclose(adam.slots["squares"][0].numpy(), [[0.0199, 0.0199], [0.01, 0.01]], rtol=1e-5)


def test_averages_are_the_running_mean_and_stand_in_for_the_weights_within_the_block_only() -> None:
    variable = tf.Variable([0.0, 4.0])
    averages = Averages([variable], 0.9)
    expected = variable.numpy()
    for step in range(1, 8 * EVERY + 1):
        variable.assign_add([1.0, -0.5])
        averages.update(tf.constant(step, tf.int64))
        if step % EVERY == 0:
            n = step // EVERY
            keep = min(0.9**EVERY, (1 + n) / (10 + n))
            expected = keep * expected + (1 - keep) * variable.numpy()
    latest = variable.numpy()
    with averages.in_place():
        np.testing.assert_allclose(variable.numpy(), expected, rtol=1e-5)
        assert np.abs(variable.numpy() - latest).max() > 1
    np.testing.assert_array_equal(variable.numpy(), latest)


def test_without_a_decay_there_are_no_averages() -> None:
    variable = tf.Variable([1.0])
    averages = Averages([variable], 0.0)
    averages.update(tf.constant(EVERY, tf.int64))
    with averages.in_place():
        assert variable.numpy() == 1.0
    assert averages.values == []
