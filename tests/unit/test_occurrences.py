"""Indexing: the vectors of a run are those of the encoder, and a free sentence finds its own copy."""

import json
import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from oracle import write_random_model

from toolkit.bilm.folder import Model, load_model
from toolkit.config import Settings, resolve
from toolkit.embed.encoder import Encoder
from toolkit.errors import DataError, UsageError
from toolkit.runs.reader import list_runs
from toolkit.senses.find import find_senses, model_of
from toolkit.senses.neighbours import load, neighbours
from toolkit.senses.occurrences import encode_query, index
from toolkit.senses.sources import Occurrence

SENTENCES = ["the bank of the river", "a bank was in the bank", "water to the spring .", "money in a bank"]
OCCURRENCES = [
    Occurrence(word, place, "s" * (number % 2), tuple(text.split()))
    for number, text in enumerate(SENTENCES)
    for place, word in enumerate(text.split())
    if word in ("bank", "spring")
]


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> Model:
    return load_model(tiny_model)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return _at(tmp_path)


def _at(tmp_path: Path, *assignments: str) -> Settings:
    (tmp_path / "config.toml").write_text("")
    return resolve(tmp_path / "config.toml", {}, [f"paths.runs={tmp_path / 'runs'}", *assignments], {}).settings


def test_the_vectors_are_those_of_the_encoder(model: Model, settings: Settings, tmp_path: Path):
    document = index(model, OCCURRENCES, ["bank", "spring"], settings, "a test", "mine")
    assert document["words"] == {"bank": 4, "spring": 1} and document["sentences"] == 4
    run, path = find_senses(tmp_path / "runs", "mine")
    assert (run.status, run.kind, run.model_fingerprint) == ("done", "senses", model.fingerprint)
    occurrences = load(path)
    encoder = Encoder(model)
    for i in range(len(occurrences)):
        (layers,) = encoder.encode([occurrences.tokens(i)])
        expected = layers[:, occurrences.positions[i]]
        np.testing.assert_allclose(occurrences.vectors[i].astype(np.float32), expected, rtol=1e-3, atol=1e-5)
    assert model_of(occurrences, tmp_path / "runs") == model.path.resolve()


def test_a_word_that_a_model_of_words_lacks_is_told(
    settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    words = write_random_model(tmp_path / "words", 5, ("the", "bank", "of"), reads_words=True, bidirectional=False)
    with caplog.at_level(logging.WARNING):
        document = index(load_model(words), OCCURRENCES, ["bank", "spring"], settings, "a test")
    assert "the model reads spring as <UNK>: its vocabulary lacks them" in [r.message for r in caplog.records]
    assert load(Path(document["output"])).vectors.shape == (5, 3, 8)


def test_a_free_sentence_finds_its_copies(model: Model, settings: Settings):
    occurrences = load(Path(index(model, OCCURRENCES, ["bank"], settings, "a test")["output"]))
    query = encode_query(model, occurrences, "A BANK... the bank of the river", "bank", settings)
    assert query.tokens[query.position] == "BANK" and query.position == 1
    same = encode_query(model, occurrences, "money in a bank", "bank", settings)
    stored = occurrences.of("bank")[-1]
    np.testing.assert_allclose(same.vectors, occurrences.vectors[stored].astype(np.float32), rtol=1e-3, atol=1e-5)
    assert stored not in [near.index for near in neighbours(occurrences, same, 1, 9)]
    with pytest.raises(UsageError, match="'spring' is not a token of the sentence"):
        encode_query(model, occurrences, "money in a bank", "spring", settings)


def test_another_model_cannot_answer(model: Model, settings: Settings, tmp_path: Path):
    occurrences = load(Path(index(model, OCCURRENCES, [], settings, "a test")["output"]))
    other = load_model(write_random_model(tmp_path / "other", seed=8))
    with pytest.raises(UsageError, match=rf"{other.fingerprint}.*{model.fingerprint}"):
        encode_query(other, occurrences, "a bank", "bank", settings)
    assert occurrences.attributes["state_mark"].startswith("warm-")
    old = replace(occurrences, attributes=dict(occurrences.attributes) | {"state_mark": "warm-0"})
    with pytest.raises(UsageError, match="another warm state than today's: index again"):
        encode_query(model, old, "a bank", "bank", settings)


def test_words_that_do_not_occur_are_told(model: Model, settings: Settings, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        index(model, OCCURRENCES, ["bank", "mole"], settings, "a test")
    assert [record.message for record in caplog.records] == ["no occurrence of mole in a test"]
    with pytest.raises(DataError, match="none of mole occurs in a test"):
        index(model, [], ["mole"], settings, "a test")
    assert len(list_runs(settings.paths.runs)) == 1


def test_a_state_that_depends_on_other_sentences_is_refused(model: Model, tmp_path: Path):
    with pytest.raises(UsageError, match="depend on its sentence alone"):
        index(model, OCCURRENCES, [], _at(tmp_path, "embed.state=stateful"), "a test")
    assert not (tmp_path / "runs").exists()


def test_a_failure_while_encoding_leaves_a_failed_run_and_no_file(model: Model, settings: Settings):
    scaled = load_model(model.path)
    for variable in scaled.bilm.char_cnn.variables:
        variable.assign(variable * 1e3)
    with pytest.raises(DataError, match="beyond float16"):
        index(scaled, OCCURRENCES, [], settings, "a test")
    (run,) = list_runs(settings.paths.runs)
    assert run.status == "failed" and not list(run.folder.glob("*.h5")) and not list(run.folder.glob(".*tmp*"))
    assert "float16" in json.loads((run.folder / "run.json").read_text())["message"]
