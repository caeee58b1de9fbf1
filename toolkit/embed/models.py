"""From what a user calls a model to its folder or zip."""

import difflib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.bilm.modelfiles import OPTIONS, holds_model
from toolkit.config import NO_FILE
from toolkit.errors import FormatError, UsageError
from toolkit.runs import schema

if TYPE_CHECKING:  # what reads runs imports pandas, of which a path has no need
    from toolkit.runs.reader import RunSummary


def config_for(model: str | Path) -> Path | None:
    """Return the configuration file that Python code needs for a model: none for a path, which needs no run store."""
    return NO_FILE if Path(model).expanduser().exists() else None


def resolve_model(text: str, store: Path) -> Path:
    """Return the model folder or zip that a text names, without loading it.

    Args:
        text: a model folder (`options.json` and one `*.hdf5`), a zip in the NLPL layout, or a pretrain run: its folder,
            its id, or another name that `toolkit.runs.find` knows. What lies at that path wins over a run's name.
        store: the run store.

    Raises:
        UsageError: nothing is called so, with near names; or the run is of a kind that makes no model.
        FormatError: what lies there is no model, or the run has not exported its model.
    """
    path = Path(text).expanduser()
    if path.is_dir():
        return _from_folder(path)
    if path.exists():
        if not zipfile.is_zipfile(path):
            raise FormatError(f"{path} is no model: give a model folder, an NLPL zip or a run")
        return path
    from toolkit.runs.find import find_run

    try:
        run = find_run(store, text, "pretrain")
    except UsageError as error:
        raise UsageError(f"no model {text!r}: no such path{_near(path)}; {error}") from None
    return _from_run(run)


def _from_folder(folder: Path) -> Path:
    if holds_model(folder):
        return folder
    if (folder / schema.MANIFEST).is_file():
        from toolkit.runs.reader import summarise

        return _from_run(summarise(folder.resolve()))
    raise FormatError(f"{folder} is no model folder: {OPTIONS} is missing")


def _from_run(run: "RunSummary") -> Path:
    model = run.folder / schema.MODEL
    if (model / OPTIONS).is_file():
        return model
    if run.kind and run.kind != "pretrain":
        raise UsageError(f"run {run.id} is of the kind {run.kind}: only pretrain runs hold a model")
    raise FormatError(f"run {run.id} ({run.status}) has no exported model in {schema.MODEL}/")


def _near(path: Path) -> str:
    if not path.parent.is_dir():
        return ""
    near = difflib.get_close_matches(path.name, [entry.name for entry in path.parent.iterdir()], n=3)
    return f" ({path.parent} holds {', '.join(near)})" if near else ""
