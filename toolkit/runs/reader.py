"""Reading run folders: half-written, damaged and foreign ones come back with their problem, never as an exception."""

import json
import shutil
import socket
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import TypeAdapter, ValidationError

from toolkit.config import flatten
from toolkit.errors import FormatError, UsageError
from toolkit.files import read_json
from toolkit.process import is_alive
from toolkit.runs import schema
from toolkit.runs.notes import Notes, read_notes
from toolkit.runs.schema import Manifest, Metric

MANIFEST = TypeAdapter(Manifest)
METRICS = TypeAdapter(list[Metric])
METRIC_COLUMNS = {
    "name": "str",
    "split": "str",
    "value": "float64",
    "step": "float64",
    "tokens": "float64",
    "seconds": "float64",
    "kind": "str",
}
SILENCE_SECONDS = 60.0  # the shortest silence that makes a living process "stalled"
SILENT_BEATS = 5


@dataclass(frozen=True)
class RunSummary:
    """What a table of runs shows of one, read from three small files.

    Attributes:
        id: the folder's name.
        folder: its path.
        status: as written, or derived: "stalled", "crashed", "unreadable".
        problem: what is damaged, "" for a healthy run.
        kind, name: of the manifest, or of the folder's name where the manifest cannot be read.
        group, seed, task: of the manifest; "" or None where unreadable.
        started, ended: UTC.
        progress, seconds_left: of a running one, where the run says so.
        metrics: the scores of results.json; empty until written.
        notes: tags, note, archived.
    """

    id: str
    folder: Path
    status: str
    problem: str = ""
    kind: str = ""
    name: str = ""
    group: str = ""
    seed: int | None = None
    task: str | None = None
    started: datetime | None = None
    ended: datetime | None = None
    progress: float | None = None
    seconds_left: float | None = None
    model_fingerprint: str | None = None
    metrics: tuple[Metric, ...] = ()
    notes: Notes = field(default_factory=Notes)

    @property
    def alive(self) -> bool:
        """Whether a process may still be writing this folder."""
        return self.status in (schema.RUNNING, schema.STALLED)

    @property
    def title(self) -> str:
        """The name without the seed: what the runs of one group are called."""
        return (self.name or self.id).removesuffix(f"-s{self.seed}")

    @property
    def main_score(self) -> Metric | None:
        """The score that a table shows: the first on the test split, else on valid or dev, else the first."""
        for split in ("test", "valid", "dev"):
            for metric in self.metrics:
                if metric["split"] == split:
                    return metric
        return self.metrics[0] if self.metrics else None


@dataclass(frozen=True)
class Run:
    """One run with its whole manifest; the long files are read by the functions of this module.

    Attributes:
        summary: as in the list.
        manifest: `run.json` as it stands.
        settings: the resolved settings by dotted key, and the inputs that the run names (`schema.INPUTS`); empty when
            config.toml is missing or damaged.
        results: `results.json` as it stands, empty until written.
    """

    summary: RunSummary
    manifest: Mapping[str, Any]
    settings: Mapping[str, Any]
    results: Mapping[str, Any]


def list_runs(store: Path) -> list[RunSummary]:
    """Return all runs of a store, the newest first, archived ones too; an absent store has none.

    Folders that are neither runs nor named like one are passed over.
    """
    return [summarise(folder) for folder in run_folders(store)]


def run_folders(store: Path) -> list[Path]:
    """Return the folders of a store that are runs or named like one, the newest name first."""
    if not store.is_dir():
        return []
    return sorted(
        (
            folder
            for folder in store.iterdir()
            if schema.RUN_ID.fullmatch(folder.name)
            and folder.is_dir()
            and (schema.RUN_FOLDER.fullmatch(folder.name) or (folder / schema.MANIFEST).is_file())
        ),
        key=lambda folder: folder.name,
        reverse=True,
    )


def read_run(store: Path, run_id: str) -> Run:
    """Return one run by its whole id.

    Raises:
        UsageError: there is no such run in the store, or the text is no run id at all.
    """
    return load_run(run_folder(store, run_id))


def run_folder(store: Path, run_id: str) -> Path:
    """Return the folder of a listed run; the only way from a text that somebody sent to a path.

    Raises:
        UsageError: the text is no run id, or no run of the store has it.
    """
    if schema.RUN_ID.fullmatch(run_id):
        for folder in run_folders(store):
            if folder.name == run_id:
                return folder
    raise UsageError(f"no run {run_id!r} in {store}; `toolkit runs list` shows what is there")


def load_run(folder: Path) -> Run:
    """Return the run in a folder; what is damaged is told in `summary.problem`."""
    summary = summarise(folder)
    problems = [summary.problem] if summary.problem else []
    documents: dict[str, Any] = {}
    for name in (schema.MANIFEST, schema.RESULTS):
        try:
            document = read_json(folder / name)
            documents[name] = document if isinstance(document, dict) else {}
        except (FormatError, OSError):  # the summary tells it already, or results are not written yet
            documents[name] = {}
    settings: dict[str, Any] = {}
    try:
        settings = flatten(tomllib.loads((folder / schema.CONFIG).read_text(encoding="utf-8")))
        settings |= schema.inputs_of(documents[schema.MANIFEST].get("extra"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, AttributeError) as error:
        problems.append(f"{schema.CONFIG} cannot be read ({error})")
    return Run(
        replace(summary, problem="; ".join(problems)), documents[schema.MANIFEST], settings, documents[schema.RESULTS]
    )


def summarise(folder: Path) -> RunSummary:
    """Return a run folder's summary; never raises for what the folder holds."""
    problems: list[str] = []
    notes = Notes()
    try:
        notes = read_notes(folder)
    except (FormatError, OSError) as error:
        problems.append(_short(error, folder))
    try:
        manifest = _manifest(folder)
    except (FormatError, OSError) as error:
        problems.insert(0, _short(error, folder))
        named = schema.RUN_FOLDER.fullmatch(folder.name)
        kind, name = named.groups() if named else ("", "")
        return RunSummary(folder.name, folder, schema.UNREADABLE, "; ".join(problems), kind, name, notes=notes)
    metrics: list[Metric] = []
    if (folder / schema.RESULTS).exists():
        try:
            metrics = _results(folder)
        except (FormatError, OSError) as error:
            problems.append(_short(error, folder))
    task = manifest["extra"].get("task")
    return RunSummary(
        id=folder.name,
        folder=folder,
        status=derived_status(manifest, datetime.now(UTC), socket.gethostname()),
        problem="; ".join(problems),
        kind=manifest["kind"],
        name=manifest["name"],
        group=manifest["group"],
        seed=manifest["seed"],
        task=task if isinstance(task, str) else None,
        started=_time(manifest["started"]),
        ended=_time(manifest["ended"]) if manifest["ended"] else None,
        progress=manifest["progress"],
        seconds_left=manifest["seconds_left"],
        model_fingerprint=manifest["model_fingerprint"],
        metrics=tuple(metrics),
        notes=notes,
    )


def derived_status(manifest: Mapping[str, Any], now: datetime, host: str) -> str:
    """Return the status that a reader can stand by.

    A "running" is "crashed" when its process is gone from this host, "stalled" when it was silent for five of its own
    heartbeats (60 s at least), here or on another host.
    """
    if manifest["status"] != schema.RUNNING:
        return manifest["status"]
    if manifest["host"] == host and not is_alive(manifest["pid"], manifest["process_started"]):
        return schema.CRASHED
    silence = (now - _time(manifest["heartbeat"])).total_seconds()
    limit = max(SILENCE_SECONDS, SILENT_BEATS * manifest["heartbeat_seconds"])
    return schema.STALLED if silence > limit else schema.RUNNING


def read_metrics(folder: Path) -> pd.DataFrame:
    """Return metrics.jsonl with the columns name, split, value, step, tokens, seconds, kind; empty when not there.

    Lines that are not whole are left out: the last one may be half-written. Absent numbers are not-a-number, an absent
    kind is "".
    """
    rows = []
    try:
        text = (folder / schema.METRICS).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        text = ""
    for line in text.splitlines():
        row = _metric_line(line)
        if row is not None:
            rows.append(row)
    return pd.DataFrame(rows, columns=list(METRIC_COLUMNS)).astype(METRIC_COLUMNS)


def read_predictions(folder: Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return predictions.parquet.

    Args:
        folder: of the run.
        columns: only these, which is much faster than all; the four that every run has are among them.

    Raises:
        FormatError: the file is missing, damaged or lacks a column.
    """
    path = folder / schema.PREDICTIONS
    try:
        frame = pd.read_parquet(path, columns=None if columns is None else list(columns))
    except FileNotFoundError:
        raise FormatError(f"{folder.name} keeps no predictions ({schema.PREDICTIONS} is missing)") from None
    except (OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
        raise FormatError(f"{path} is not a readable Parquet file ({error})") from None
    missing = {"example_id", "split", "gold", "predicted"} - set(frame.columns)
    if missing:
        raise FormatError(f"{path} lacks the columns {', '.join(sorted(missing))}")
    return frame


def read_layers(folder: Path) -> list[dict[str, Any]]:
    """Return the scalar mix over training (step, seed, weights, gamma), oldest first; empty when there is none.

    Raises:
        FormatError: layers.json is damaged.
    """
    path = folder / schema.LAYERS
    if not path.exists():
        return []
    history = read_json(path)
    if not isinstance(history, list) or not all(
        isinstance(entry, dict) and isinstance(entry.get("weights"), list) for entry in history
    ):
        raise FormatError(f"{path} is not a list of mixes with weights")
    return history


def log_tail(folder: Path, lines: int = 200) -> str:
    """Return the last lines of log.txt, "" when there is none."""
    try:
        text = (folder / schema.LOG).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def remove_run(summary: RunSummary) -> None:
    """Delete a run folder for good.

    Raises:
        UsageError: a process may still be writing it.
    """
    if summary.alive:
        raise UsageError(f"run {summary.id} is {summary.status}: stop it first (process still there), then remove it")
    hidden = summary.folder.with_name(f".removing-{summary.id}")
    summary.folder.rename(hidden)  # gone from every list at once, even when the deletion is interrupted
    shutil.rmtree(hidden)


def _manifest(folder: Path) -> Manifest:
    document = read_json(folder / schema.MANIFEST)
    version = document.get("schema_version") if isinstance(document, dict) else None
    if isinstance(version, int) and version > schema.SCHEMA_VERSION:
        raise FormatError(
            f"run.json has schema version {version}, this toolkit reads up to {schema.SCHEMA_VERSION}: "
            "update the toolkit"
        )
    manifest = _checked(MANIFEST, document, schema.MANIFEST)
    for key in ("started", "heartbeat"):
        _time(manifest[key])
    return manifest


def _results(folder: Path) -> list[Metric]:
    document = read_json(folder / schema.RESULTS)
    if not isinstance(document, dict) or "metrics" not in document:
        raise FormatError(f"{schema.RESULTS} has no metrics")
    return _checked(METRICS, document["metrics"], schema.RESULTS)


def _checked(adapter: TypeAdapter, document: Any, name: str) -> Any:
    try:
        return adapter.validate_python(document, strict=False)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise FormatError(f"{name}: {where or 'the document'} does not fit: {first['msg']}") from None


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise FormatError(f"{schema.MANIFEST}: {text!r} is not an ISO 8601 time") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _metric_line(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
        clean = {key: row.get(key, "" if key == "kind" else None) for key in METRIC_COLUMNS}
        clean["value"] = float(row["value"])  # "nan" and "inf" are written as texts
        for key in ("step", "tokens", "seconds"):
            clean[key] = float("nan") if clean[key] is None else float(clean[key])
    except (json.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError):
        return None
    return clean if isinstance(clean["name"], str) and isinstance(clean["split"], str) else None


def _short(error: Exception, folder: Path) -> str:
    """Return the message without the folder, which stands beside it anyway."""
    return str(error).replace(f"{folder}/", "")
