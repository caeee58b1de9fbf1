"""The oracle reproduces both published sets of golden arrays, so it may judge where those files are absent."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from oracle import Oracle

TOLERANCE = 2e-6  # the golden arrays are float32 of TensorFlow 1

SETS = {
    "bilm-tf": ("bilm-tf/model", "lm_embeddings_sentences.json"),
    "allennlp": ("allennlp", "sentences.json"),
}


def load(shared_data: Path, name: str) -> tuple[Oracle, list[list[str]], Path]:
    folder, sentences = SETS[name]
    folder = shared_data / "bilm-fixtures" / folder
    oracle = Oracle(folder / "options.json", folder / "lm_weights.hdf5")
    return oracle, json.loads((folder / sentences).read_text()), folder


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("row", range(3))
def test_oracle_reproduces_the_golden_arrays(shared_data, name, row):
    oracle, sentences, folder = load(shared_data, name)
    state = None
    with h5py.File(folder / f"lm_embeddings_{row}.hdf5") as golden:
        for number, text in enumerate(sentences[row]):
            layers, state = oracle.encode(text.split(), state)
            expected = np.concatenate(golden[str(number)][()], axis=-1)
            np.testing.assert_allclose(layers[-1], expected, atol=TOLERANCE, rtol=0)


def test_oracle_reproduces_the_golden_token_table(shared_data):
    oracle, _, folder = load(shared_data, "allennlp")
    words = (folder / "vocab_test.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    with h5py.File(folder / "elmo_token_embeddings.hdf5") as golden:
        expected = golden["embedding"][()]
    assert len(words) == 458
    np.testing.assert_allclose([oracle.token(word) for word in words], expected, atol=TOLERANCE, rtol=0)


def test_oracle_reads_words_as_bytes_and_cuts_them(tiny_model):
    oracle = Oracle(tiny_model / "options.json", tiny_model / "weights.hdf5")
    kept = oracle.options["char_cnn"]["max_characters_per_token"] - 2
    np.testing.assert_array_equal(oracle.token("a" * 10_000), oracle.token("a" * kept))
    assert not np.allclose(oracle.token("é"), oracle.token("e"))
