"""Model folders and HDF5 files that are not what they say."""

import json
import os
import shutil
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest

WEIGHTS = "weights.hdf5"
CELL = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell"
NAMES = ("char_embed", "CNN/W_cnn_0", "CNN/b_cnn_0", f"{CELL}/W_0", f"{CELL}/B", f"{CELL}/W_P_0")


@pytest.fixture
def model(tiny_model: Path, tmp_path: Path) -> Path:
    """Return a copy of the tiny model."""
    return shutil.copytree(tiny_model, tmp_path / "model")


@pytest.fixture
def weights(model: Path) -> Path:
    """Return the weights file of the copy."""
    return next(model.glob("*.hdf5"))


def change(model: Path, table: str, **values: object) -> None:
    """Change options.json; `table` is lstm, char_cnn or empty."""
    options = json.loads((model / "options.json").read_text())
    (options[table] if table else options).update(values)
    (model / "options.json").write_text(json.dumps(options))


@pytest.mark.parametrize("value", [10**9, 10**12, 2**40])
@pytest.mark.parametrize("key", ["dim", "n_layers"])
def test_giant_lstms_are_compared_with_the_file_first(toolkit, model, key, value):
    change(model, "lstm", **{key: value})
    toolkit("inspect", model).refused("options.json asks for")


@pytest.mark.parametrize("value", [10**9, 10**12])
@pytest.mark.parametrize(
    ("key", "message"),
    [("n_highway", "options.json asks for"), ("max_characters_per_token", "it must be 10000 at most")],
)
def test_giant_character_networks_are_refused(toolkit, model, key, value, message):
    change(model, "char_cnn", **{key: value})
    toolkit("inspect", model).refused(message)


@pytest.mark.parametrize("value", [10**9, 10**12])
def test_giant_tables_are_compared_with_the_file_first(toolkit, model, value):
    change(model, "char_cnn", embedding={"dim": value})
    toolkit("inspect", model).refused("char_embed", str(value))
    change(model, "char_cnn", embedding={"dim": 4}, filters=[[1, value]])
    toolkit("inspect", model).refused("options.json asks for")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0, -1, -3.0])
@pytest.mark.parametrize("key", ["cell_clip", "proj_clip"])
def test_clips_that_would_empty_every_vector_are_refused(toolkit, model, key, value):
    change(model, "lstm", **{key: value})
    toolkit("inspect", model).refused(key, "it must be a number above 0")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "{" * 50_000, '{"lstm": ' + "9" * 6_000 + "}", "[]", "null"]
)
@pytest.mark.parametrize("name", ["options.json", "card.json"])
def test_json_that_is_no_document_is_refused(toolkit, model, name, text):
    (model / name).write_text(text)
    toolkit("inspect", model).refused(name)


def secret(folder: Path) -> Path:
    path = folder / "secret.bin"
    path.write_bytes(os.urandom(1 << 16))
    return path


def point_away(file: h5py.File, name: str, how: str, folder: Path) -> None:
    """Put what lies in another file in the place of a dataset."""
    shape, dtype = file[name].shape, file[name].dtype
    kept = file[name][()]
    del file[name]
    with h5py.File(folder / "other.h5", "w") as other:
        other["x"] = kept
    if how == "external link":
        file[name] = h5py.ExternalLink(folder / "other.h5", "/x")
    elif how == "soft link to one":
        file["away"] = h5py.ExternalLink(folder / "other.h5", "/x")
        file[name] = h5py.SoftLink("/away")
    elif how == "circle":
        file[name] = h5py.SoftLink(f"/{name}")
    elif how == "external storage":
        file.create_dataset(name, shape, dtype, external=[(secret(folder), 0, h5py.h5f.UNLIMITED)])
    else:
        layout = h5py.VirtualLayout(shape, dtype)
        layout[...] = h5py.VirtualSource(folder / "other.h5", "x", shape)
        file.create_virtual_dataset(name, layout)


WAYS = ("external link", "soft link to one", "circle", "external storage", "virtual dataset")


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_weights_that_lie_in_another_file_are_refused(toolkit, model, weights, tmp_path, name, how):
    with h5py.File(weights, "r+") as file:
        point_away(file, name, how, tmp_path)
    toolkit("inspect", model).refused("away" if how == "soft link to one" else name, "other files are not read")


def test_a_group_that_lies_in_another_file_is_refused(toolkit, model, weights, tmp_path):
    shutil.copy(weights, tmp_path / "other.h5")
    with h5py.File(weights, "r+") as file:
        del file["CNN"]
        file["CNN"] = h5py.ExternalLink(tmp_path / "other.h5", "/CNN")
    toolkit("inspect", model).refused("CNN is a link", "other.h5")


def test_a_soft_link_inside_the_file_is_followed(toolkit, model, weights):
    with h5py.File(weights, "r+") as file:
        file["elsewhere/bias"] = file[f"{CELL}/B"][()]
        del file[f"{CELL}/B"]
        file[f"{CELL}/B"] = h5py.SoftLink("/elsewhere/bias")
    toolkit("inspect", model).worked()


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("name", ["0", "1"])
def test_dumps_that_lie_in_another_file_are_refused(toolkit, tmp_path, name, how):
    with h5py.File(tmp_path / "dump.h5", "w") as file:
        for number in range(2):
            file[str(number)] = np.ones((3, 4, 8), np.float32)
        point_away(file, name, how, tmp_path)
    toolkit("inspect", tmp_path / "dump.h5").refused("dump.h5")


@pytest.mark.parametrize("how", WAYS)
def test_token_tables_that_lie_in_another_file_are_refused(toolkit, tmp_path, how):
    with h5py.File(tmp_path / "tokens.h5", "w") as file:
        file["embedding"] = np.ones((4, 8), np.float32)
        point_away(file, "embedding", how, tmp_path)
    toolkit("inspect", tmp_path / "tokens.h5").refused("tokens.h5", "other files are not read")


def test_a_table_that_would_fill_the_memory_is_refused(toolkit, tmp_path):
    with h5py.File(tmp_path / "tokens.h5", "w") as file:
        file.create_dataset("embedding", (10**8, 100), "<f4", chunks=(1000, 100))
    toolkit("inspect", tmp_path / "tokens.h5").refused("bytes of memory")


@pytest.mark.parametrize("name", ["vocab.txt", "options.json", "card.json", WEIGHTS])
def test_a_zip_that_unpacks_to_far_more_than_it_holds_is_refused(toolkit, model, tmp_path, name):
    packed = tmp_path / "model.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in model.iterdir():
            if path.name != name:
                archive.write(path, path.name)
        archive.writestr(name, b"\n" * (70 << 20))
    toolkit("inspect", packed).refused("unpacks from" if name != WEIGHTS else "model.zip")


@pytest.mark.parametrize("name", NAMES)
def test_a_flipped_bit_is_found_by_the_fingerprint_of_the_card(toolkit, model, weights, name):
    fingerprint = json.loads(toolkit("inspect", model, "--json").out)["fingerprint"]
    (model / "card.json").write_text(json.dumps({"fingerprint": fingerprint}))
    toolkit("inspect", model).worked()
    with h5py.File(weights, "r+") as file:
        values = file[name][()]
        values.reshape(-1).view(np.uint32)[3] ^= 1
        file[name][...] = values
    toolkit("inspect", model).refused("damaged", fingerprint, "copy the model again")
