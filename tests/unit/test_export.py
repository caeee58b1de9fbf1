"""`toolkit export`: the published names and layout, the same model on the way back, nothing half-written."""

import json
import shutil
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
from oracle import Oracle, write_random_model
from typer.testing import CliRunner

from toolkit.bilm.export import export
from toolkit.bilm.folder import load_model
from toolkit.bilm.warming import WARM_MARK
from toolkit.cli.main import app
from toolkit.embed.encoder import Encoder
from toolkit.errors import UsageError


def names(path: Path) -> set[str]:
    if path.is_dir():
        return {file.name for file in path.iterdir()}
    with zipfile.ZipFile(path) as archive:
        return set(archive.namelist())


@pytest.mark.parametrize("out", ["published", "5.zip", "5.ZIP"])
def test_the_export_is_the_model_under_the_published_names(scoring_model: Path, tmp_path: Path, out: str) -> None:
    model = load_model(scoring_model)
    document = export(model, tmp_path / out)
    assert names(tmp_path / out) == {"options.json", "model.hdf5", "vocab.txt", "card.json"} == set(document["files"])
    back = load_model(tmp_path / out)
    assert back.fingerprint == model.fingerprint == document["fingerprint"] == back.card["fingerprint"]
    assert back.card["warm_state"] == WARM_MARK
    assert back.vocabulary.words == model.vocabulary.words
    assert not back.has_softmax
    assert list(tmp_path.iterdir()) == [tmp_path / out]


@pytest.mark.parametrize("out", ["published", "5.zip"])
def test_the_softmax_comes_on_request_in_a_file_of_its_own(scoring_model: Path, tmp_path: Path, out: str) -> None:
    model = load_model(scoring_model)
    assert export(model, tmp_path / out, softmax=True)["softmax"] is True
    assert "softmax.h5" in names(tmp_path / out)
    for left, right in zip(
        vars(load_model(tmp_path / out).softmax()).values(), vars(model.softmax()).values(), strict=True
    ):
        np.testing.assert_array_equal(left, right)


def test_the_weights_are_the_published_datasets_unchanged(tiny_model: Path, tmp_path: Path) -> None:
    export(load_model(tiny_model), tmp_path / "out")

    def content(path: Path) -> dict[str, np.ndarray]:
        found = {}
        with h5py.File(path) as file:
            file.visititems(lambda name, item: found.update({name: item[()]}) if hasattr(item, "shape") else None)
        return found

    old, new = content(tiny_model / "weights.hdf5"), content(tmp_path / "out" / "model.hdf5")
    assert old.keys() == new.keys()
    for name, value in old.items():
        assert new[name].dtype == np.float32
        np.testing.assert_array_equal(new[name], value)
    oracle = Oracle(tmp_path / "out" / "options.json", tmp_path / "out" / "model.hdf5")  # which reads by itself
    (layers,) = Encoder(load_model(tiny_model), "zero").encode([["the", "bank"]])
    np.testing.assert_allclose(oracle.encode(["the", "bank"])[0], layers, atol=1e-5)


def test_an_nlpl_zip_becomes_a_folder_and_a_zip_again_byte_for_byte(tiny_model: Path, tmp_path: Path) -> None:
    export(load_model(tiny_model), tmp_path / "a.zip")
    export(load_model(tmp_path / "a.zip"), tmp_path / "folder")
    export(load_model(tmp_path / "folder"), tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:  # whenever it is made
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


@pytest.mark.parametrize("out", ["published", "5.zip"])
def test_a_model_of_words_is_exported_with_its_words(tmp_path: Path, out: str) -> None:
    model = load_model(write_random_model(tmp_path / "words", 5, ("the", "bank"), reads_words=True))
    document = export(model, tmp_path / out)
    assert {refusal["reader"] for refusal in document["refused_by"]} == {"AllenNLP", "simple_elmo"}
    back = load_model(tmp_path / out)
    for left, right in zip(Encoder(back).encode([["the"]]), Encoder(model).encode([["the"]]), strict=True):
        np.testing.assert_array_equal(left, right)


def test_what_exists_is_kept_and_what_lacks_is_named(tiny_model: Path, tmp_path: Path) -> None:
    model = load_model(tiny_model)
    (tmp_path / "there").write_text("mine")
    with pytest.raises(UsageError, match="there exists already"):
        export(model, tmp_path / "there")
    with pytest.raises(UsageError, match="holds no softmax"):
        export(model, tmp_path / "new.zip", softmax=True)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["mine"]


def test_the_command_names_files_and_readers_that_refuse(tmp_path: Path) -> None:
    folder = write_random_model(tmp_path / "model", seed=1)  # words of 20 characters
    result = CliRunner().invoke(app, ["export", str(folder), "-o", str(tmp_path / "out.zip")])
    assert result.exit_code == 0, result.stderr
    assert "model.hdf5 (" in result.stdout and "AllenNLP cannot read this: its words have 50" in result.stdout
    result = CliRunner().invoke(app, ["export", str(folder), "-o", str(tmp_path / "out.zip"), "--json"])
    assert (result.exit_code, result.stdout) == (2, "")
    shutil.rmtree(folder)
    result = CliRunner().invoke(app, ["export", str(tmp_path / "out.zip"), "-o", str(tmp_path / "out"), "--json"])
    assert json.loads(result.stdout)["layout"] == "folder"
