"""The Keras layer: the encoder's vectors in a graph, frozen or trained, masked, and whole in a .keras file."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle import write_random_model

import toolkit
from toolkit.bilm.backend import tf
from toolkit.bilm.folder import load_model
from toolkit.embed.encoder import Encoder
from toolkit.errors import UsageError
from toolkit.keras.tokens import character_ids, padded_tokens, trimmed
from toolkit.text.chars import char_rows

keras = tf.keras
SENTENCES = [
    ["the", "bank", "of", "the", "river"],
    ["money"],
    [],
    ["spring", "wäter", "🙂", "x" * 80],
]


def padded(sentences: list[list[str]], extra: int = 0) -> tf.Tensor:
    longest = max(map(len, sentences)) + extra
    return tf.constant([[*s, *[""] * (longest - len(s))] for s in sentences])


def as_ids(sentences: list[list[str]], max_characters: int) -> tf.Tensor:
    ids = np.zeros((len(sentences), max(map(len, sentences)), max_characters), np.int32)
    for row, sentence in zip(ids, sentences, strict=True):
        row[: len(sentence)] = char_rows(sentence, max_characters)
    return tf.constant(ids)


def network(layer: keras.layers.Layer) -> keras.Model:
    """Return a network over sentences that is quick to trace; the pooling sees the mask."""
    inputs = keras.Input(shape=(), dtype="string")
    return keras.Model(inputs, keras.layers.Dense(1)(keras.layers.GlobalAveragePooling1D()(layer(inputs))))


@pytest.fixture(scope="module")
def layer(tiny_model):
    return toolkit.ElmoEmbedding(tiny_model)


def lesson() -> tf.data.Dataset:
    texts = tf.constant([" ".join(sentence) for sentence in SENTENCES])
    return tf.data.Dataset.from_tensor_slices((texts, tf.constant([0.0, 1.0, 0.0, 1.0]))).batch(2)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), max_size=6), st.integers(3, 50))
@example(["<S>", "</S>", "<S", "", "a\0b", "🙂" * 20, "ab", "abc"], 5)
@example(["<S>", "</S>"], 3)
def test_character_ids_in_a_graph_are_those_of_char_rows(words, max_characters):
    found = character_ids(tf.constant(words, tf.string), max_characters)
    np.testing.assert_array_equal(found, char_rows(words, max_characters))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.text(st.sampled_from("ab🙂 \t\n\r\x0b\x0c\x1c\x1f\x85\xa0\u1680\u2003\u2028\u202f\u205f\u3000\u200b")),
        min_size=1,
    )
)
@example([chr(code) + "x" + chr(code) for code in range(0x3001) if chr(code).isspace()])
@example(["", " "])
def test_sentences_part_at_the_white_space_of_str_split(texts):
    found = padded_tokens(tf.constant(texts)).numpy()
    assert [[token.decode() for token in row if token] for row in found] == [text.split() for text in texts]


@settings(max_examples=10, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), min_size=1, max_size=5))
def test_trimming_changes_no_token_vector(layer, words):
    bilm = layer.bilm.bilm
    ids = tf.constant(char_rows(words, bilm.spec.max_characters))
    np.testing.assert_allclose(
        bilm.token_vectors(trimmed(ids, bilm.spec.widest_filter)), bilm.token_vectors(ids), atol=1e-6
    )


@pytest.mark.parametrize("form", ["tokens", "sentences", "ids", "ids64"])
def test_layers_are_those_of_the_encoder(tiny_model, layer, form):
    model = load_model(tiny_model)
    c = model.spec.max_characters
    inputs = {
        "tokens": lambda: padded(SENTENCES, extra=2),
        "sentences": lambda: tf.constant([" ".join(sentence) for sentence in SENTENCES]),
        "ids": lambda: as_ids(SENTENCES, c),
        "ids64": lambda: tf.cast(as_ids(SENTENCES, c), tf.int64),
    }[form]()
    found = layer.bilm(inputs).numpy()
    for row, expected in zip(found, Encoder(model).encode(SENTENCES), strict=True):
        n = expected.shape[1]
        np.testing.assert_allclose(row[:n].transpose(1, 0, 2), expected, atol=1e-5)
        assert not row[n:].any()
    assert layer.fingerprint() == model.fingerprint


@pytest.mark.parametrize("shape", [{"bidirectional": False}, {"reads_words": True}])
def test_other_shapes_give_the_encoders_layers_too(tmp_path, shape):
    folder = write_random_model(tmp_path / "model", seed=5, words=("the", "bank", "of", "river"), **shape)
    layer = toolkit.ElmoEmbedding(folder)
    found = layer.bilm(padded(SENTENCES)).numpy()
    for row, expected in zip(found, Encoder(load_model(folder)).encode(SENTENCES), strict=True):
        np.testing.assert_allclose(row[: expected.shape[1]].transpose(1, 0, 2), expected, atol=1e-5)
    again = toolkit.ElmoEmbedding.from_config(layer.get_config())
    again.set_weights(layer.get_weights())
    np.testing.assert_array_equal(again(padded(SENTENCES)), layer(padded(SENTENCES)))


def test_outputs_are_mixes_with_a_mask_and_zero_at_padding(tiny_model):
    layer = toolkit.ElmoEmbedding(tiny_model, n_outputs=2)
    layer.mixes[0].raw.assign([0.1, 0.3, 0.5])
    layer.mixes[0].gamma.assign(1.1)
    first, second = layer(padded(SENTENCES))
    mask = np.arange(5) < np.array([[len(sentence)] for sentence in SENTENCES])
    shares = np.exp([0.1, 0.3, 0.5]) / np.exp([0.1, 0.3, 0.5]).sum()
    layers = layer.bilm(padded(SENTENCES)).numpy()
    np.testing.assert_allclose(first, 1.1 * np.einsum("btlw,l->btw", layers, shares), atol=1e-5)
    np.testing.assert_allclose(second, layers.mean(2), atol=1e-5)
    for output in (first, second):
        np.testing.assert_array_equal(output._keras_mask, mask)
        assert not output.numpy()[~mask].any()


def test_layer_norm_counts_tokens_only(tiny_model):
    layer = toolkit.ElmoEmbedding(tiny_model, layer_norm=True, top_only=True)
    found = layer(padded(SENTENCES, extra=3)).numpy()
    mask = np.arange(8) < np.array([[len(sentence)] for sentence in SENTENCES])
    inside = found[mask]
    assert not found[~mask].any()
    assert abs(inside.mean()) < 1e-5 and inside.var() == pytest.approx(1.0, abs=1e-4)
    np.testing.assert_allclose(layer(padded(SENTENCES)), found[:, :5], atol=1e-5)


def test_what_follows_sees_the_mask(layer):
    inputs = keras.Input(shape=(None,), dtype="string")
    model = keras.Model(inputs, keras.layers.Bidirectional(keras.layers.LSTM(3))(layer(inputs)))
    np.testing.assert_allclose(model(padded(SENTENCES)), model(padded(SENTENCES, extra=4)), atol=1e-6)
    alone = np.concatenate([model(padded([sentence], extra=1)) for sentence in SENTENCES])
    np.testing.assert_allclose(model(padded(SENTENCES)), alone, atol=1e-6)


def test_dropout_and_penalty(tiny_model):
    layer = toolkit.ElmoEmbedding(tiny_model, dropout=0.5, l2_coef=0.5)
    x = padded(SENTENCES)
    np.testing.assert_array_equal(layer(x), layer(x))
    dropped = layer(x, training=True).numpy()
    share = (dropped[x.numpy() != b""] == 0).mean()
    assert 0.3 < share < 0.7
    layer.mixes[0].raw.assign([1.0, -2.0, 3.0])
    assert float(sum(layer.losses)) == pytest.approx(7.0)


def test_fit_leaves_a_frozen_bilm_and_trains_its_mix(tiny_model):
    layer = toolkit.ElmoEmbedding(tiny_model)
    before, mix = layer.fingerprint(), layer.mixes[0].get_weights()
    model = network(layer)
    model.compile("adam", "mse")
    model.fit(lesson(), epochs=2, verbose=0, shuffle=False)
    assert layer.fingerprint() == before
    for old, new in zip(mix, layer.mixes[0].get_weights(), strict=True):
        assert (old != new).all()
    layer.trainable = False
    before = layer.get_weights()
    model.compile("adam", "mse")
    model.fit(lesson(), verbose=0, shuffle=False)
    for old, new in zip(before, layer.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_a_layer_made_untrainable_has_nothing_to_train(tiny_model):
    layer = toolkit.ElmoEmbedding(tiny_model, fine_tune=True, trainable=False)
    assert [weight.path for weight in network(layer).trainable_weights if weight.path.startswith(layer.name)] == []


@pytest.mark.slow
def test_bilm_learns_at_a_rate_of_its_own(tiny_model):
    """With Adam, whose steps do not depend on the size of gradients, a tenth of the rate is a tenth of the step."""

    def moves(rate: float | None) -> list[tuple[str, np.ndarray]]:
        keras.utils.set_random_seed(1)
        layer = toolkit.ElmoEmbedding(tiny_model, fine_tune=True, name="elmo")
        model, optimizer = network(layer), keras.optimizers.Adam(0.01)
        model.compile(optimizer if rate is None else layer.optimizer(optimizer, rate), "mse")
        before, start = [weight.numpy() for weight in model.trainable_weights], layer.bilm.start[0].numpy()
        model.train_on_batch(*next(iter(lesson())))
        np.testing.assert_array_equal(layer.bilm.start[0].numpy(), start)
        return [(w.path, w.numpy() - old) for w, old in zip(model.trainable_weights, before, strict=True)]

    one, two = moves(None), moves(0.001)
    assert sum(path.startswith("elmo/bilm/") for path, _ in one) == 19
    for (path, move), (_, other) in zip(one, two, strict=True):
        # Differences of float32 weights of size 1 know a step of 0.001 to about 1e-7.
        np.testing.assert_allclose(other, move * (0.1 if path.startswith("elmo/bilm/") else 1.0), atol=5e-7)
        assert 0 < abs(move).max() < 0.0101  # also where rows of a table repeat


def test_gradients_in_a_function_are_those_of_differences(tiny_model):
    layer = toolkit.ElmoEmbedding(tiny_model, fine_tune=True)
    x, rng = padded(SENTENCES), np.random.default_rng(1)
    weights = layer.trainable_weights

    @tf.function
    def loss_and_gradients(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(layer(x)))
        return loss, tape.gradient(loss, [weight.value for weight in weights])

    def loss() -> float:
        return float(loss_and_gradients(x)[0])

    gradients = loss_and_gradients(x)[1]
    for weight, gradient in zip(weights, gradients, strict=True):
        value, step = weight.numpy(), 1e-3
        gradient = tf.convert_to_tensor(gradient).numpy()
        direction = rng.normal(size=value.shape) * (gradient != 0)
        direction /= max(np.linalg.norm(direction), 1e-9)
        weight.assign(value + step * direction)
        above = loss()
        weight.assign(value - step * direction)
        slope = (above - loss()) / (2 * step)
        weight.assign(value)
        assert slope == pytest.approx(float((gradient * direction).sum()), rel=0.05, abs=0.1), weight.path
    assert loss_and_gradients.experimental_get_tracing_count() == 1


def test_frozen_bilm_passes_no_gradient_but_its_mix_does(tiny_model):
    layer = toolkit.ElmoEmbedding(tiny_model)
    assert [weight.name for weight in layer.trainable_weights] == ["raw", "gamma"]
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(layer(padded(SENTENCES))))
    bilm, mix = tape.gradient(loss, [layer.bilm.bilm.layers[0].kernel, layer.mixes[0].raw.value])
    assert bilm is None and np.abs(mix).max() > 0


LOADS = """
import sys
import numpy as np
import toolkit
from toolkit.bilm.backend import tf
toolkit.ElmoEmbedding
model = tf.keras.models.load_model(sys.argv[1])
texts = tf.constant(np.load(sys.argv[2])["texts"].tolist())
np.save(sys.argv[3], model(texts))
model.fit(texts, np.zeros(len(texts), np.float32), verbose=0)
layer = next(layer for layer in model.layers if isinstance(layer, toolkit.ElmoEmbedding))
print(layer.fingerprint(), *(float(one.learning_rate) for one in model.optimizer.optimizers),
      *(int(one.iterations) for one in model.optimizer.optimizers))
"""


@pytest.mark.slow
def test_a_saved_model_is_whole_in_a_new_process(tiny_model, tmp_path):
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    layer = toolkit.ElmoEmbedding(folder, fine_tune=True, dropout=0.1, l2_coef=0.01)
    model = network(layer)
    model.compile(layer.optimizer(keras.optimizers.Adam(0.01), 0.001), "mse")
    model.fit(lesson(), verbose=0, shuffle=False)
    shutil.rmtree(folder)
    model.save(tmp_path / "net.keras")
    texts = [" ".join(sentence) for sentence in SENTENCES]
    np.savez(tmp_path / "texts.npz", texts=texts)
    files = [tmp_path / name for name in ("net.keras", "texts.npz", "out.npy")]
    done = subprocess.run(
        [sys.executable, "-c", LOADS, *map(str, files)], capture_output=True, text=True, cwd=Path(__file__).parents[2]
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(files[2]), model(tf.constant(texts)), atol=1e-6)
    fingerprint, *numbers = done.stdout.split()[-5:]
    assert fingerprint != layer.fingerprint()  # it was trained on there
    assert sorted(map(float, numbers[:2])) == pytest.approx([0.001, 0.01]) and numbers[2:] == ["3", "3"]


def test_loaded_weights_have_the_fingerprint(tiny_model, tmp_path):
    model = network(toolkit.ElmoEmbedding(tiny_model, name="elmo"))
    model.save(tmp_path / "net.keras")
    again = keras.models.load_model(tmp_path / "net.keras")
    assert again.get_layer("elmo").fingerprint() == load_model(tiny_model).fingerprint
    assert not again.get_layer("elmo").bilm.trainable


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (lambda: tf.zeros((1, 2)), "got float32"),
        (lambda: tf.zeros((1, 2), tf.int32), "character ids"),
        (lambda: tf.zeros((1, 2, 7), tf.int32), "character ids"),
        (lambda: tf.fill((1, 2, 3), "a"), "got string"),
    ],
)
def test_other_inputs_are_refused(layer, inputs, message):
    with pytest.raises(UsageError, match=message):
        layer(inputs())


def test_wrong_arguments_are_refused(tiny_model, tmp_path):
    with pytest.raises(UsageError, match="no model 'nosuch'"):
        toolkit.ElmoEmbedding("nosuch")
    with pytest.raises(UsageError, match="n_outputs is 0"):
        toolkit.ElmoEmbedding(tiny_model, n_outputs=0)
    words = write_random_model(tmp_path / "words", seed=5, words=("the",), reads_words=True)
    with pytest.raises(UsageError, match="reads words: give strings"):
        toolkit.ElmoEmbedding(words)(tf.zeros((1, 2, 50), tf.int32))


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([["the bank of the river"], ["money"]], "a sentence is one token: give texts as"),
        ([["", "the", "bank"], ["money", "", ""]], "a sentence begins with padding: pad on the right"),
        ([["<S>", "bank", "</S>"]], "both are added, remove them"),
    ],
)
def test_tokens_of_other_habits_are_refused(layer, tokens, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        layer(tf.constant(tokens))


def test_character_ids_padded_on_the_left_are_refused(layer):
    ids = as_ids([["the", "bank"]], layer.bilm.spec.max_characters)
    with pytest.raises(tf.errors.InvalidArgumentError, match="pad on the right"):
        layer(tf.concat([tf.zeros_like(ids[:, :1]), ids], 1))
