"""The toolkit in Python: what `import toolkit` costs, and a loaded biLM."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import toolkit
from toolkit.bilm.folder import load_model
from toolkit.embed.encoder import Encoder
from toolkit.embed.score import Scorer
from toolkit.errors import UsageError

SENTENCES = [["the", "bank", "of", "the", "river"], [], ["money"]]


@pytest.fixture(scope="module")
def bilm(tiny_model):
    return toolkit.load_bilm(tiny_model)


def test_import_is_light_and_lists_what_there_is():
    code = "import sys, toolkit; print(*dir(toolkit)); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    names, modules = (set(line.split()) for line in done.stdout.splitlines())
    assert {"load_bilm", "open_embeddings", "ElmoEmbedding", "ScalarMix", "__version__"} <= names
    assert not {"numpy", "h5py", "pydantic", "tensorflow", "keras"} & modules


@pytest.mark.parametrize("name", toolkit.__all__)
def test_every_promised_name_is_there(name):
    assert getattr(toolkit, name)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'toolkit' has no attribute 'load_elmo'"):
        toolkit.load_elmo  # noqa: B018


def test_vectors_are_those_of_the_encoder(bilm, tiny_model):
    encoder = Encoder(load_model(tiny_model))
    found, expected = bilm.embed(SENTENCES), list(encoder.encode(SENTENCES))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == np.float32
    np.testing.assert_array_equal(bilm.token_vectors(["the", "a"]), encoder.token_vectors(["the", "a"]))
    for layers, choice in (("top", lambda e: e[-1]), ("average", lambda e: e.mean(0)), (1, lambda e: e[1])):
        for one, other in zip(bilm.embed(iter(SENTENCES), layers=layers), expected, strict=True):
            np.testing.assert_array_equal(one, choice(other))


def test_state_and_store_come_from_the_settings(tiny_model, tmp_path, monkeypatch):
    zero = next(Encoder(load_model(tiny_model), "zero").encode(SENTENCES))
    np.testing.assert_array_equal(toolkit.load_bilm(str(tiny_model), state="zero").embed(SENTENCES)[0], zero)
    monkeypatch.setenv("TOOLKIT_EMBED__STATE", "zero")
    monkeypatch.setenv("TOOLKIT_RUNS", str(tmp_path / "runs"))
    np.testing.assert_array_equal(toolkit.load_bilm(tiny_model).embed(SENTENCES)[0], zero)
    with pytest.raises(UsageError, match="no model 'nosuch'"):
        toolkit.load_bilm("nosuch")
    with pytest.raises(UsageError, match=r"embed\.state"):
        toolkit.load_bilm(tiny_model, state="hot")


def test_bfloat16_products_on_request(bilm, tiny_model):
    exact, found = bilm.embed(SENTENCES)[0], toolkit.load_bilm(tiny_model, compute="bfloat16").embed(SENTENCES)[0]
    assert 0 < np.linalg.norm(found - exact) / np.linalg.norm(exact) < 2e-2
    with pytest.raises(UsageError, match=r"embed\.compute"):
        toolkit.load_bilm(tiny_model, compute="float64")


def test_scores_are_those_of_the_scorer(scoring_model):
    found = toolkit.load_bilm(scoring_model).score(SENTENCES)
    assert found == list(Scorer(load_model(scoring_model)).scores(SENTENCES))
    assert found[0].tokens == 5 and found[1].mean is None and found[2].mean > 0


def test_a_model_without_softmax_embeds_but_does_not_score(bilm):
    with pytest.raises(UsageError, match="softmax"):
        bilm.score(SENTENCES)


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        (b"the bank", "got the bytes b'the bank' as sentences"),
        ([b"the bank"], "sentence 0 should be a text or a list of tokens, got b'the bank'"),
        ([["the bank of the river"]], "sentence 0 is one token that holds white space, 'the bank of the river'"),
        ([["the"], ["bank", 3]], "sentence 1 should be a text or a list of tokens, it holds 3 of the type int"),
        ([[["the"]]], "holds \\['the'\\] of the type list"),
        ([b"x" * 100], "got b'x{37}…"),
    ],
)
def test_what_is_no_sentence_is_refused(bilm, sentences, message):
    with pytest.raises(UsageError, match=message):
        bilm.embed(sentences)


def test_texts_are_tokenized_as_the_toolkit_tokenizes_raw_text(bilm):
    tokens = ["The", "bank", "of", "the", "river", "."]
    for given in ("The bank of the river.", ["The bank of the river."], [tokens]):
        np.testing.assert_array_equal(bilm.embed(given)[0], bilm.embed([tokens])[0])
    assert bilm.tokenize("The bank.\nIt was shut.") == ["The", "bank", ".", "It", "was", "shut", "."]
    assert [len(layers[0]) for layers in bilm.embed(["The bank.", "", "It was."])] == [3, 0, 3]


@pytest.mark.parametrize(
    ("sentence", "warning"),
    [
        (["<S>", "The", "bank", ".", "</S>"], "sentence 0 has <S> as a token"),
        (["The", "</S>"], "sentence 0 has </S> as a token"),
        (["The", "river bank", "."], "the token 'river bank' holds white space"),
    ],
)
def test_tokens_of_other_habits_are_warned_of(bilm, caplog, sentence, warning):
    bilm.embed([["The", "bank", "."]])
    assert not caplog.messages
    bilm.embed([sentence])
    assert warning in caplog.text


def test_a_text_in_place_of_words_is_refused(bilm):
    with pytest.raises(UsageError, match="takes a list of words, got 'bank'"):
        bilm.token_vectors("bank")
    with pytest.raises(UsageError, match="no layers 'all,top'"):
        bilm.embed(SENTENCES, layers="all,top")


def test_many_small_calls_trace_nothing_anew(bilm):
    functions = bilm.model.bilm.token_vectors, bilm.model.bilm.run_layers
    for n in range(1, 6):
        bilm.embed([[f"{'x' * n}{k}" for k in range(n)]])
    before = [function.experimental_get_tracing_count() for function in functions]
    for n in range(200):
        bilm.embed([[f"w{n}-{k}" + "y" * (n % 7) for k in range(n % 11)]])
    assert [function.experimental_get_tracing_count() for function in functions] == before
