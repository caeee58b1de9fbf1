"""The toolkit reproduces the published golden arrays, and would not if its arithmetic were broken.

Upstream ran ten batches of three sentences, each row with its own carried state; here each row is a stream of its own.
"""

import json
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from toolkit.bilm.folder import load_model
from toolkit.embed.encoder import Encoder

TOLERANCE = 2e-6  # the golden arrays are float32 of TensorFlow 1
BROKEN = 0.05  # far above the tolerance: what a real mistake in the arithmetic costs at least

# How many times closer than zero the warm state comes to carried states: mean |difference| from the golden top layers,
# all sentences but the first of each stream, which starts cold upstream too. Measured: 350 and 7.7.
CLOSER = {"bilm-tf": 50, "allennlp": 4}

SETS = {
    "bilm-tf": ("bilm-tf/model", "lm_embeddings_sentences.json"),
    "allennlp": ("allennlp", "sentences.json"),
}


@pytest.fixture(params=SETS)
def golden(request, shared_data, tmp_path) -> tuple[Path, list[list[list[str]]], list[list[np.ndarray]]]:
    """A copy of the model that a test may break, the sentences of each row, and the top layers expected."""
    folder, sentences = SETS[request.param]
    folder = shared_data / "bilm-fixtures" / folder
    model = tmp_path / "model"
    model.mkdir()
    shutil.copyfile(folder / "options.json", model / "options.json")
    shutil.copyfile(folder / "lm_weights.hdf5", model / "lm_weights.hdf5")
    rows = [[text.split() for text in row] for row in json.loads((folder / sentences).read_text())]
    expected = []
    for number in range(len(rows)):
        with h5py.File(folder / f"lm_embeddings_{number}.hdf5") as file:
            expected.append([np.concatenate(file[str(i)][()], axis=-1) for i in range(len(rows[number]))])
    return model, rows, expected


def differences(model: Path, rows: list, expected: list, state: str = "stateful") -> np.ndarray:
    """The largest difference of each sentence, [rows, sentences]."""
    loaded = load_model(model)
    return np.array(
        [
            [
                np.abs(layers[-1] - top).max()
                for layers, top in zip(Encoder(loaded, state).encode(row), tops, strict=True)
            ]
            for row, tops in zip(rows, expected, strict=True)
        ]
    )


def distances(model: Path, rows: list, expected: list, state: str) -> float:
    """The mean absolute difference of all sentences that do not begin a stream."""
    encoder = Encoder(load_model(model), state)
    parts = [
        np.abs(layers[-1] - top).ravel()
        for row, tops in zip(rows, expected, strict=True)
        for layers, top in zip(encoder.encode(row[1:]), tops[1:], strict=True)
    ]
    return float(np.concatenate(parts).mean())


def cells(model: Path) -> list[str]:
    return [f"RNN_{d}/RNN/MultiRNNCell/Cell{layer}/LSTMCell" for d in range(2) for layer in range(2)]


def test_stateful_encoding_reproduces_the_golden_arrays(golden, record_property):
    worst = differences(*golden).max()
    record_property("largest_difference", float(worst))
    assert worst < TOLERANCE


def test_wrong_gate_order_would_be_noticed(golden):
    with h5py.File(golden[0] / "lm_weights.hdf5", "r+") as file:
        for cell in cells(golden[0]):
            for name in (f"{cell}/W_0", f"{cell}/B"):
                i, j, f, o = np.split(file[name][()], 4, axis=-1)
                file[name][...] = np.concatenate([i, f, j, o], axis=-1)
    assert differences(*golden).max() > BROKEN


def test_missing_forget_bias_would_be_noticed(golden):
    with h5py.File(golden[0] / "lm_weights.hdf5", "r+") as file:
        for cell in cells(golden[0]):
            bias = file[f"{cell}/B"][()]
            bias[len(bias) // 2 : 3 * len(bias) // 4] -= 1.0
            file[f"{cell}/B"][...] = bias
    assert differences(*golden).max() > BROKEN


def test_forgetting_the_state_between_sentences_would_be_noticed(golden):
    worst = differences(*golden, state="zero")
    assert worst[:, 0].max() < TOLERANCE  # the first of each stream does start from zero
    assert worst[:, 1:].max() > BROKEN


@pytest.mark.parametrize("golden", SETS, indirect=True)
def test_warm_state_comes_closer_to_carried_states_than_zero(golden, request, record_property):
    name = request.node.callspec.params["golden"]
    distance = {state: distances(*golden, state) for state in ("warm", "zero")}
    factor = distance["zero"] / distance["warm"]
    record_property("times_closer", factor)
    assert factor > CLOSER[name]


def test_token_table_equals_the_golden_one(shared_data, tmp_path):
    folder = shared_data / "bilm-fixtures" / "allennlp"
    for name in ("options.json", "lm_weights.hdf5"):
        shutil.copyfile(folder / name, tmp_path / name)
    words = (folder / "vocab_test.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    with h5py.File(folder / "elmo_token_embeddings.hdf5") as file:
        expected = file["embedding"][()]
    assert len(words) == 458
    vectors = Encoder(load_model(tmp_path)).token_vectors(words)
    np.testing.assert_allclose(vectors, expected, atol=TOLERANCE, rtol=0)
