"""Encoding: equal to the oracle for every shape of model, and a sentence's vectors depend on the sentence alone."""

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Oracle, write_random_model

from toolkit.bilm.folder import load_model
from toolkit.bilm.inference import Inference
from toolkit.bilm.warming import PASSES, WARMING
from toolkit.embed.encoder import Encoder
from toolkit.embed.states import state_mark
from toolkit.embed.tokens import TokenTable
from toolkit.errors import UsageError

TOLERANCE = 1e-5

SHAPES = {
    "default": {},
    "one layer": {"n_layers": 1},
    "four layers": {"n_layers": 4},
    "no skip": {"use_skip_connections": False},
    "no clips": {"cell_clip": None, "proj_clip": None},
    "tight clips": {"cell_clip": 0.6, "proj_clip": 0.2},
    "no LSTM projection": {"dim": 8},
    "no CNN projection": {"projection_dim": 24, "dim": 32},
    "no highway": {"n_highway": 0},
    "two highways, tanh": {"n_highway": 2, "activation": "tanh"},
    "wide filter": {"filters": [[1, 4], [7, 20]], "max_characters_per_token": 9},
    "forward only": {"bidirectional": False},
    "words": {"reads_words": True, "words": ["The", "bank", "of", "北京", "the"]},
    "words, forward only, one layer": {
        "reads_words": True,
        "words": ["The", "the"],
        "bidirectional": False,
        "n_layers": 1,
    },
}

SENTENCES = [
    text.split()
    for text in (
        "The bank of the river was flooded .",
        "Bank",
        "",
        "Zürich 北京 ñandú 🙂",
        "<S> marks in the text are the marks </S>",
        "a sentence with a word that is longer than any model reads : " + "x" * 10_000,
        "the the the the the the the the the the the the the the the the the the the the the the",
    )
]


@pytest.fixture(scope="module")
def model(tiny_model):
    return load_model(tiny_model)


def oracle_of(folder: Path) -> Oracle:
    return Oracle(folder / "options.json", folder / "weights.hdf5")


def assert_close(left, right):
    for a, b in itertools.zip_longest(left, right):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_of_model_equals_the_oracle(tmp_path, name):
    folder = write_random_model(tmp_path / "model", seed=3, **SHAPES[name])
    oracle = oracle_of(folder)
    expected = [oracle.encode(sentence)[0] for sentence in SENTENCES]
    assert_close(Encoder(load_model(folder), "zero").encode(SENTENCES), expected)


def test_stateful_encoding_carries_the_state_as_the_oracle_does(tiny_model, model):
    oracle, state, expected = oracle_of(tiny_model), None, []
    for sentence in SENTENCES:
        layers, state = oracle.encode(sentence, state)
        expected.append(layers)
    encoder = Encoder(model, "stateful")
    assert_close(itertools.chain(encoder.encode(SENTENCES[:3]), encoder.encode(SENTENCES[3:])), expected)


def test_warm_encoding_starts_from_the_fixed_sentence(tiny_model, model):
    oracle, state = oracle_of(tiny_model), None
    for _ in range(PASSES):
        _, state = oracle.encode(WARMING.split(), state)
    expected = [oracle.encode(sentence, state)[0] for sentence in SENTENCES]
    assert_close(Encoder(model).encode(SENTENCES), expected)
    assert np.abs(expected[0] - oracle.encode(SENTENCES[0])[0]).max() > 0.01  # the state matters in this model


def test_the_warming_never_changes():
    assert state_mark("warm") == "warm-482a6103b825a4d6", "every warm vector ever dumped came from the old sentence"
    assert [state_mark(state) for state in ("zero", "stateful")] == ["zero", "stateful"]


@pytest.mark.parametrize("state", ["warm", "zero"])
def test_batch_and_order_never_change_a_vector(model, state):
    expected = [next(Encoder(model, state).encode([sentence])) for sentence in SENTENCES]
    encoder = Encoder(model, state)
    assert_close(encoder.encode(SENTENCES), expected)
    assert_close(encoder.encode(SENTENCES[::-1]), expected[::-1])
    for batch_tokens in (1, 30, 100_000):
        assert_close(Encoder(model, state, batch_tokens).encode(SENTENCES * 3), expected * 3)


def test_another_process_gives_the_same_vectors(tiny_model, model, tmp_path):
    program = (
        "import sys, numpy as np; from pathlib import Path\n"
        "from toolkit.bilm.folder import load_model; from toolkit.embed.encoder import Encoder\n"
        "encoder = Encoder(load_model(Path(sys.argv[1])), batch_tokens=50)\n"
        "layers = list(encoder.encode([['Bank'], sys.argv[3].split()]))\n"
        "np.save(sys.argv[2], layers[1])\n"
    )
    out = tmp_path / "layers.npy"
    subprocess.run([sys.executable, "-c", program, tiny_model, out, " ".join(SENTENCES[0])], check=True, timeout=120)
    assert_close(Encoder(model).encode(SENTENCES[:1]), [np.load(out)])


def test_an_empty_sentence_has_no_vectors(model):
    (layers,) = Encoder(model).encode([[]])
    assert layers.shape == (model.spec.n_layers + 1, 0, model.spec.width)
    assert layers.dtype == np.float32


def test_layer_0_is_the_token_vector_twice(model):
    (layers,) = Encoder(model).encode([SENTENCES[0]])
    vectors = Encoder(model).token_vectors(SENTENCES[0])
    np.testing.assert_array_equal(layers[0], np.concatenate([vectors, vectors], -1))


@pytest.mark.parametrize("tokens", [2000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_a_very_long_line_goes_among_short_ones(model, tokens):
    short = SENTENCES[0]
    first, long, third = Encoder(model, batch_tokens=512).encode([short, (short * 2500)[:tokens], short])
    assert_close([first], [third])
    assert long.shape == (3, tokens, model.spec.width)
    forward = slice(model.spec.projection_dim)
    np.testing.assert_allclose(long[:, : len(short), forward], first[..., forward], atol=TOLERANCE)
    assert np.isfinite(long).all()


def test_encoding_streams(model):
    read = itertools.count()
    endless = (SENTENCES[0] for _ in read)
    next(Encoder(model, batch_tokens=64).encode(endless))
    assert next(read) < 200


@given(st.lists(st.text(st.characters(codec=None), min_size=1, max_size=30), min_size=1, max_size=6))
@settings(deadline=None, max_examples=60)
def test_any_words_equal_the_oracle(tiny_model, model, words):
    words = [word.encode("utf-8", "ignore").decode() for word in words]
    oracle = oracle_of(tiny_model)
    np.testing.assert_allclose(
        Encoder(model, "zero").token_vectors(words), [oracle.token(word) for word in words], atol=TOLERANCE
    )


def test_the_word_cache_starts_afresh_when_full_and_changes_nothing(model):
    expected = TokenTable(Inference(model.bilm)).vectors([str(i) for i in range(40)])
    table = TokenTable(Inference(model.bilm), cache_bytes=10 * 4 * model.spec.projection_dim)
    assert table.capacity == 10
    for first in (0, 4, 0, 12, 30):
        words = [str(i) for i in range(first, first + 8)]
        np.testing.assert_allclose(table.vectors(words), expected[first : first + 8], atol=TOLERANCE)
    np.testing.assert_allclose(table.vectors([str(i) for i in range(40)]), expected, atol=TOLERANCE)


def test_an_unknown_state_is_named(model):
    with pytest.raises(UsageError, match="unknown state 'wram': did you mean 'warm'"):
        Encoder(model, "wram")


def test_a_long_line_in_pieces_equals_the_whole(tmp_path) -> None:
    model = load_model(write_random_model(tmp_path, 3))
    line = [f"w{i % 37}" for i in range(700)]
    sentences = [["short"], line, ["another", "one"]]
    (_, whole, _), (_, pieces, _) = (list(Encoder(model, batch_tokens=size).encode(sentences)) for size in (4096, 64))
    assert pieces.shape == (model.spec.n_layers + 1, 700, model.spec.width)
    np.testing.assert_allclose(pieces, whole, atol=1e-6)


def test_in_bfloat16_a_sentence_has_the_same_vectors_to_the_bit_alone_and_in_any_batch(tmp_path) -> None:
    model = load_model(write_random_model(tmp_path, 3))
    sentences = [[f"word{i}" * (1 + i % 6), "and", f"more{i % 90}"] * (1 + i % 4) for i in range(120)]
    encoder = Encoder(model, compute="bfloat16")
    together = list(encoder.encode(sentences))
    for size in (1, 3, 20):  # of fresh tables, so that words are computed in other company
        apart = list(Encoder(model, compute="bfloat16").encode(sentences[:size]))
        for one, other in zip(apart, together[:size], strict=True):
            np.testing.assert_array_equal(one, other)


def test_bfloat16_products_stay_near_float32(tmp_path) -> None:
    model = load_model(write_random_model(tmp_path, 3))
    sentences = [[f"word{i}", "and", "more"] * (1 + i % 4) for i in range(40)]  # rows enough to be compiled
    exact, rough = (list(Encoder(model, compute=compute).encode(sentences)) for compute in ("float32", "bfloat16"))
    errors = [np.linalg.norm(a - b) / np.linalg.norm(a) for a, b in zip(exact, rough, strict=True)]
    assert 0 < max(errors) < 2e-2
    assert rough[0].dtype == np.float32
