"""Models as others publish them are read as they lie there: folders and zips, their names, vocabularies and tables."""

import gzip
import json
import shutil
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
from oracle import Oracle, write_random_model

from toolkit.bilm.folder import load_model
from toolkit.embed.encoder import Encoder
from toolkit.embed.models import resolve_model
from toolkit.errors import FormatError, UsageError
from toolkit.inspection import inspect

SENTENCE = ["The", "bank", "of", "the", "river", "was", "flooded", "."]
TOLERANCE = 1e-5
UNSUITED = {  # lists that no softmax can have, which published models bring as a cache of character ids
    "no marks": b"the\nof\n",
    "a word twice": b"<S>\n</S>\n<UNK>\nthe\nthe\n",
    "a blank line": b"<S>\n</S>\n<UNK>\n\nthe\n",
    "Latin-1": b"<S>\n</S>\n<UNK>\ncaf\xe9\n",
}


def encoded(path: Path) -> np.ndarray:
    return next(Encoder(load_model(path), "zero").encode([SENTENCE]))


def expected(folder: Path) -> np.ndarray:
    return Oracle(folder / "options.json", folder / "weights.hdf5").encode(SENTENCE)[0]


def packed(folder: Path, out: Path, renamed: dict[str, str] | None = None) -> Path:
    """Zip a folder's files flat, the weights as model.hdf5."""
    names = {"weights.hdf5": "model.hdf5"} | (renamed or {})
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, names.get(file.name, file.name))
    return out


def test_ai2s_own_names_need_no_renaming(tmp_path: Path) -> None:
    folder = write_random_model(tmp_path / "elmo", seed=1)
    right = expected(folder)
    (folder / "options.json").rename(folder / "elmo_2x24_8_options.json")
    (folder / "weights.hdf5").rename(folder / "elmo_2x24_8_weights.hdf5")
    (folder / "elmo_2x24_8_softmax_weights.hdf5").write_bytes(b"not looked at")
    np.testing.assert_allclose(encoded(resolve_model(str(folder), tmp_path)), right, atol=TOLERANCE)
    assert inspect(str(folder), tmp_path)["kind"] == "model"
    (folder / "elmo_other_options.json").write_text("{}")
    with pytest.raises(FormatError, match=r"several models .*give each a folder"):
        load_model(folder)


def test_the_upstream_fixtures_are_models_as_they_lie_there(shared_data: Path) -> None:
    for name in ("bilm-tf/model", "allennlp"):
        model = load_model(shared_data / "bilm-fixtures" / name)  # golden arrays lie beside the weights, in *.hdf5
        assert (model.spec.dim, model.spec.projection_dim) == (64, 16)


@pytest.mark.parametrize("changes", [{"n_characters": 261}, {"n_characters": 262}, {"max_characters_per_token": 9}])
def test_options_of_training_and_words_of_any_length(tmp_path: Path, changes: dict) -> None:
    folder = write_random_model(tmp_path / "model", seed=2, **changes)
    options = json.loads((folder / "options.json").read_text())
    training = {"bidirectional": True, "dropout": 0.1, "n_tokens_vocab": 793471, "n_train_tokens": 768648884}
    (folder / "options.json").write_text(json.dumps(options | training))
    np.testing.assert_allclose(encoded(folder), expected(folder), atol=TOLERANCE)
    assert load_model(folder).spec.to_options()["char_cnn"]["n_characters"] == 262


@pytest.mark.parametrize("name", [None, "vocab.txt", "vocab.txt.gz"])
def test_a_zip_is_read_with_or_without_its_vocabulary(tmp_path: Path, name: str | None) -> None:
    folder = write_random_model(tmp_path / "model", seed=3, words=("the", "of") if name else ())
    if name == "vocab.txt.gz":
        data = (folder / "vocab.txt").read_bytes()
        (folder / "vocab.txt").unlink()
        (folder / name).write_bytes(gzip.compress(data))
    path = packed(folder, tmp_path / "5.zip")
    before = sorted(tmp_path.rglob("*"))
    for model in (load_model(path), load_model(folder)):
        assert (model.vocabulary and model.vocabulary.words) == (
            ["<S>", "</S>", "<UNK>", "the", "of"] if name else None
        )
    np.testing.assert_allclose(encoded(path), expected(folder), atol=TOLERANCE)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", UNSUITED)
def test_a_list_that_no_softmax_has_is_left_aside(tmp_path: Path, name: str) -> None:
    folder = write_random_model(tmp_path / "model", seed=3)
    (folder / "vocab.txt").write_bytes(UNSUITED[name])
    for path in (folder, packed(folder, tmp_path / "5.zip")):
        assert load_model(path).vocabulary is None
        np.testing.assert_allclose(encoded(path), expected(folder), atol=TOLERANCE)


def test_with_a_softmax_such_a_list_is_an_error(scoring_model: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(scoring_model, tmp_path / "model")
    (folder / "vocab.txt").write_bytes(UNSUITED["a word twice"])
    with pytest.raises(FormatError, match=r"vocab\.txt, line 5: 'the' stands on line 4"):
        load_model(folder)


def test_a_zip_brings_words_and_softmax_too(scoring_model: Path, tmp_path: Path) -> None:
    words = write_random_model(tmp_path / "words", 5, ("the", "bank", "of"), reads_words=True)
    np.testing.assert_allclose(encoded(packed(words, tmp_path / "words.zip")), expected(words), atol=TOLERANCE)
    path = packed(scoring_model, tmp_path / "scoring.zip")
    np.testing.assert_array_equal(load_model(path).softmax().weight, load_model(scoring_model).softmax().weight)
    assert inspect(str(path), tmp_path)["softmax"] is True


def test_a_cached_table_replaces_the_characters(shared_data: Path, tmp_path: Path) -> None:
    """As bilm-tf with `use_character_inputs=False`: same vectors for the words of the table, `<UNK>` for others."""
    fixture = shared_data / "bilm-fixtures" / "allennlp"
    shutil.copyfile(fixture / "lm_weights.hdf5", tmp_path / "weights.hdf5")
    shutil.copyfile(fixture / "elmo_token_embeddings.hdf5", tmp_path / "tokens.hdf5")
    shutil.copyfile(fixture / "vocab_test.txt", tmp_path / "vocab.txt")
    options = json.loads((fixture / "options.json").read_text())
    del options["char_cnn"]
    (tmp_path / "options.json").write_text(json.dumps(options))
    model = load_model(tmp_path)
    assert (model.spec.reads_words, model.spec.n_words) == (True, 458)
    sentences = [text.split() for text in json.loads((fixture / "sentences.json").read_text())[0]]
    known = [words for words in sentences if set(words) <= set(model.vocabulary.words)]
    assert len(known) >= 5
    characters = Encoder(load_model(fixture), "stateful").encode(known)
    for left, right in zip(Encoder(model, "stateful").encode(known), characters, strict=True):
        np.testing.assert_allclose(left, right, atol=TOLERANCE)
    tokens = Encoder(model).token_vectors(["Zyklon", "<UNK>"])
    np.testing.assert_array_equal(*tokens)
    shutil.copyfile(tmp_path / "tokens.hdf5", tmp_path / "more.hdf5")
    with pytest.raises(FormatError, match=r"several tables of tokens \(more\.hdf5, tokens\.hdf5\)"):
        load_model(tmp_path)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-400])


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [cut, flipped])
def test_a_damaged_zip_is_one_line(tiny_model: Path, tmp_path: Path, damage) -> None:
    path = packed(tiny_model, tmp_path / "5.zip")
    damage(path)
    with pytest.raises(FormatError, match=r"5\.zip") as caught:
        load_model(path)
    assert "\n" not in str(caught.value)


def test_a_zip_of_something_else_says_what_it_holds(tiny_model: Path, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"no model: options\.json is missing; it holds encoder\.pkl"):
        load_model(packed(tiny_model, tmp_path / "5.zip", {"options.json": "encoder.pkl", "vocab.txt": "word.dic"}))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("char_cnn", None, "lacks the key 'n_tokens_vocab'"),
        ("char_cnn", [], "wrong kind"),
        ("char_cnn", [1], "wrong kind"),
        ("lstm", {"dim": -4, "projection_dim": -8, "n_layers": 2}, "dim is -4"),
        ("lstm", {"dim": float("inf"), "projection_dim": 8}, "wrong kind"),
        ("lstm", None, "wrong kind"),
    ],
)
def test_options_that_make_no_sense_are_one_line(tiny_model: Path, tmp_path: Path, key: str, value, message) -> None:
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    options = json.loads((folder / "options.json").read_text())
    (folder / "options.json").write_text(json.dumps(options | {key: value}))
    with pytest.raises(FormatError, match=message):
        load_model(folder)


def test_too_short_words_are_refused(tmp_path: Path) -> None:
    folder = write_random_model(tmp_path / "m", 1, max_characters_per_token=2, filters=[[1, 4]])
    with pytest.raises(FormatError, match="max_characters_per_token is 2: a sentence mark takes 3"):
        load_model(folder)


def test_options_that_are_no_object_are_refused(tiny_model: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    (folder / "options.json").write_text("[]")
    with pytest.raises(FormatError, match="holds list, not an object"):
        load_model(folder)


def test_weights_that_are_text_or_not_there_name_the_dataset(tiny_model: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        shape = file["CNN_proj/b_proj"].shape
        del file["CNN_proj/b_proj"]
        file["CNN_proj/b_proj"] = np.full(shape, b"text")
    with pytest.raises(FormatError, match="damaged at CNN_proj/b_proj"):
        load_model(folder)
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        del file["CNN_proj/b_proj"]
    with pytest.raises(FormatError, match="lacks the dataset 'CNN_proj/b_proj'"):
        load_model(folder)


def test_another_warm_state_than_the_cards_is_told(tiny_model: Path, tmp_path: Path, caplog) -> None:
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    (folder / "card.json").write_text(json.dumps({"warm_state": "0" * 16}))
    load_model(folder)
    assert "another warm state" in caplog.text


def test_a_words_model_without_a_table_is_named(tmp_path: Path) -> None:
    folder = write_random_model(tmp_path / "words", 5, ("the",), reads_words=True)
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        del file["embedding"]
    with pytest.raises(FormatError, match="lacks the dataset 'embedding'"):
        load_model(folder)
    (folder / "vocab.txt").unlink()
    with pytest.raises((FormatError, UsageError)):
        Encoder(load_model(folder))
