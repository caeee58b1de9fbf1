"""What a user may call a model, and the one line that everything else gets."""

import json
import zipfile
from pathlib import Path

import pytest
from stores import evaluate_run, pretrain_run

from toolkit.bilm.folder import load_model
from toolkit.embed.models import resolve_model
from toolkit.errors import FormatError, UsageError
from toolkit.runs import schema


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def export(model: Path, run: Path) -> Path:
    """Put a model into a run as pretraining does."""
    target = run / schema.MODEL
    target.mkdir(exist_ok=True)
    for file in model.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    return target


def test_a_model_folder_is_itself(tiny_model: Path, store: Path):
    assert resolve_model(str(tiny_model), store) == tiny_model


def test_a_run_is_found_by_folder_id_and_name(tiny_model: Path, store: Path):
    run = pretrain_run(store)
    target = export(tiny_model, run)
    name = json.loads((run / schema.MANIFEST).read_text())["name"]
    for text in (str(run), run.name, name):
        assert resolve_model(text, store).resolve() == target.resolve()


def test_an_nlpl_zip_is_a_model(tiny_model: Path, store: Path, tmp_path: Path):
    path = tmp_path / "5.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(tiny_model / "options.json", "options.json")
        archive.write(tiny_model / "weights.hdf5", "model.hdf5")
    assert resolve_model(str(path), store) == path
    assert load_model(path).fingerprint == load_model(tiny_model).fingerprint


def test_a_folder_wins_over_a_run_of_that_name(tiny_model: Path, store: Path, tmp_path: Path, monkeypatch):
    run = pretrain_run(store)
    export(tiny_model, run)
    export(tiny_model, tmp_path).rename(tmp_path / run.name)
    monkeypatch.chdir(tmp_path)
    assert resolve_model(run.name, store) == Path(run.name)


def test_an_unknown_name_comes_with_near_ones(store: Path, tmp_path: Path):
    (tmp_path / "wiki-small").mkdir()
    with pytest.raises(UsageError, match=r"no model '.*wiki-smal': no such path \(.* holds wiki-small\); no run"):
        resolve_model(str(tmp_path / "wiki-smal"), store)


def test_a_folder_without_options_says_what_is_missing(store: Path, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(FormatError, match=r"empty is no model folder: options\.json is missing"):
        resolve_model(str(tmp_path / "empty"), store)


def test_a_folder_without_weights_says_what_is_missing(tiny_model: Path, store: Path, tmp_path: Path):
    (tmp_path / "options.json").write_bytes((tiny_model / "options.json").read_bytes())
    (tmp_path / "softmax_weights.hdf5").write_bytes(b"no weights of the biLM")
    with pytest.raises(FormatError, match=rf"{tmp_path} holds options\.json but no weights \(\*\.hdf5\)"):
        load_model(resolve_model(str(tmp_path), store))


def test_a_run_without_its_model_says_so(store: Path):
    run = pretrain_run(store)
    (run / schema.MODEL / "options.json").unlink(missing_ok=True)
    with pytest.raises(FormatError, match=rf"run {run.name} \(.*\) has no exported model in model/"):
        resolve_model(run.name, store)


def test_a_run_of_another_kind_holds_no_model(store: Path):
    run = evaluate_run(store, n=5)
    with pytest.raises(UsageError, match="of the kind evaluate: only pretrain runs hold a model"):
        resolve_model(str(run), store)


def test_another_file_is_no_model(store: Path, tmp_path: Path):
    (tmp_path / "text.txt").write_text("words")
    with pytest.raises(FormatError, match=r"text\.txt is no model"):
        resolve_model(str(tmp_path / "text.txt"), store)
