"""`toolkit inspect`: every kind of thing is named with its shape, anything else is one clear line."""

import json
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from stores import evaluate_run

from toolkit.bilm.folder import load_model
from toolkit.config import Embed, Settings
from toolkit.embed.dump import dump
from toolkit.errors import FormatError, UsageError
from toolkit.inspection import describe, inspect
from toolkit.senses.occurrences import index
from toolkit.senses.sources import Occurrence


def test_a_model_folder_and_a_zip_are_models(scoring_model: Path, tmp_path: Path):
    found = inspect(str(scoring_model), tmp_path)
    model = load_model(scoring_model)
    assert (found["kind"], found["fingerprint"], found["softmax"]) == ("model", model.fingerprint, True)
    assert (found["layers"], found["projection_dim"], found["width"], found["dim"]) == (2, 8, 16, 24)
    with h5py.File(scoring_model / "weights.hdf5") as file:
        sizes = []
        file.visititems(lambda _, item: sizes.append(item.size) if isinstance(item, h5py.Dataset) else None)
    assert found["parameters"] == sum(sizes) + 4  # the mask's row of char_embed is added on loading
    shutil.copytree(scoring_model, tmp_path / "nlpl")
    (tmp_path / "nlpl" / "weights.hdf5").rename(tmp_path / "nlpl" / "model.hdf5")
    packed = shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path / "nlpl")
    assert inspect(packed, tmp_path)["fingerprint"] == model.fingerprint


def test_a_dump_says_sentences_tokens_and_model(tiny_model: Path, tmp_path: Path):
    (tmp_path / "text.txt").write_text("the bank .\n\na\n")
    model = load_model(tiny_model)
    dump(model, tmp_path / "text.txt", tmp_path / "all.h5", Embed(dtype="float16"))
    found = inspect(str(tmp_path / "all.h5"), tmp_path)
    expected = {"kind": "dump", "sentences": 3, "tokens": 4, "layers": 3, "width": 16, "dtype": "float16"}
    assert expected.items() <= found.items()
    assert found["attributes"]["model_fingerprint"] == model.fingerprint
    with h5py.File(tmp_path / "foreign.h5", "w") as file:  # of another maker: no attributes
        file["0"], file["1"] = np.zeros((3, 5, 8), np.float32), np.zeros((3, 2, 8), np.float32)
    assert {"sentences": 2, "tokens": 7, "width": 8}.items() <= inspect(str(tmp_path / "foreign.h5"), tmp_path).items()


def test_runs_are_told_with_what_they_hold(tiny_model: Path, tmp_path: Path):
    settings = Settings().model_copy(update={"paths": Settings().paths.model_copy(update={"runs": tmp_path / "runs"})})
    document = index(load_model(tiny_model), [Occurrence("a", 0, "x", ("a", "b"))], [], settings, "a test", "mine")
    for text in ("mine", document["run"], str(tmp_path / "runs" / document["run"])):
        found = inspect(text, tmp_path / "runs")
        assert (found["kind"], found["run_kind"], found["holds"]["words"]) == ("run", "senses", {"a": 1})
    assert inspect(document["output"], tmp_path)["kind"] == "occurrences"
    folder = evaluate_run(tmp_path / "runs", n=20)
    found = inspect(str(folder), tmp_path)
    assert found["run_kind"] == "evaluate" and "holds" not in found
    assert "run kind" in describe(found) and json.dumps(found)


def test_a_vocabulary_is_told_from_other_text(scoring_model: Path, tmp_path: Path):
    found = inspect(str(scoring_model / "vocab.txt"), tmp_path)
    assert (found["kind"], found["words"], found["first"][:3]) == ("vocabulary", 17, ["<S>", "</S>", "<UNK>"])


def thing(folder: Path, name: str) -> Path:
    path = folder / name
    contents = {
        "empty": b"",
        "text": b"plain words\n",
        "list": b"one\ntwo\n",
        "binary": b"\x00\x01",
        "latin": b"caf\xe9\n",
    }
    if name == "folder":
        path.mkdir()
        (path / "x.txt").write_text("x")
    elif name in ("h5", "weights", "cut"):
        with h5py.File(path, "w") as file:
            file["RNN_0/x" if name == "weights" else "y"] = np.zeros(2000)
        if name == "cut":
            path.write_bytes(path.read_bytes()[:900])
    else:
        path.write_bytes(contents[name])
    return path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("empty", "it is empty"),
        ("text", "not a model folder or zip, a dump"),
        ("list", "as a vocabulary: .* lacks <S>"),
        ("binary", "not a model folder or zip, a dump"),
        ("latin", "not UTF-8"),
        ("folder", r"neither a model folder \(options.json\) nor a run \(run.json\): it holds x.txt"),
        ("h5", "HDF5 file of another kind .datasets y."),
        ("weights", "weights file of a model: inspect its folder"),
        ("cut", "cut is"),
    ],
)
def test_anything_else_is_one_clear_line(tmp_path: Path, name: str, message: str):
    with pytest.raises(FormatError, match=message) as caught:
        inspect(str(thing(tmp_path, name)), tmp_path)
    assert "\n" not in str(caught.value)


def test_nothing_at_all_is_a_usage_error(tmp_path: Path):
    with pytest.raises(UsageError, match=r"no file or folder at .*none.*no run"):
        inspect("none", tmp_path)
