"""Reading run folders: half-written, damaged and foreign ones come back with their problem, never as an exception."""

import json
import logging
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import TypeAdapter, ValidationError

from toolkit.config import flatten
from toolkit.errors import FormatError, UsageError
from toolkit.files import read_json, read_toml, remove_folder, sweep
from toolkit.process import is_alive
from toolkit.runs import schema
from toolkit.runs.lock import RunLock
from toolkit.runs.notes import Notes, read_notes
from toolkit.runs.schema import Manifest, Metric, Mix

logger = logging.getLogger(__name__)

MANIFEST = TypeAdapter(Manifest)
METRICS = TypeAdapter(list[Metric])
MIXES = TypeAdapter(list[Mix])
METRIC_COLUMNS = {
    "name": "str",
    "split": "str",
    "value": "float64",
    "step": "float64",
    "tokens": "float64",
    "seconds": "float64",
    "kind": "str",
}
TEXT_COLUMNS = ("example_id", "split", "gold", "predicted")
SILENCE_SECONDS = 60.0  # the shortest silence that makes a living process "stalled"
SILENT_BEATS = 5
GONE_SECONDS = (
    3600.0  # the silence after which a run of another host counts as crashed: its process cannot be looked up
)


UNITS = ((86_400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))


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
        whereabouts: what is known of the process of a run that has not ended, in words.
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
    data_fingerprint: str | None = None
    metrics: tuple[Metric, ...] = ()
    notes: Notes = field(default_factory=Notes)
    whereabouts: str = ""

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
        settings = read_settings(folder) | schema.inputs_of(documents[schema.MANIFEST].get("extra"))
    except (FormatError, OSError, AttributeError) as error:
        problems.append(_short(error, folder))
    return Run(
        replace(summary, problem="; ".join(problems)), documents[schema.MANIFEST], settings, documents[schema.RESULTS]
    )


def read_settings(folder: Path) -> dict[str, Any]:
    """Return the settings of a run by dotted key, as they are in its config.toml.

    Raises:
        FormatError: config.toml is missing or damaged, or holds values that no setting has.
    """
    path = folder / schema.CONFIG
    try:
        settings = flatten(read_toml(path))
        json.dumps(settings, allow_nan=False)
    except (AttributeError, RecursionError, TypeError, ValueError) as error:
        raise FormatError(f"{path} holds no settings of a run ({error})") from None
    return settings


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
    now, host = datetime.now(UTC), socket.gethostname()
    return RunSummary(
        id=folder.name,
        folder=folder,
        status=derived_status(manifest, now, host),
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
        data_fingerprint=manifest["data_fingerprint"],
        metrics=tuple(metrics),
        notes=notes,
        whereabouts=_whereabouts(manifest, now, host),
    )


def derived_status(manifest: Mapping[str, Any], now: datetime, host: str) -> str:
    """Return the status of a run as far as it can be known here.

    A "running" is "crashed" when its process is gone from this host, or when another host has been silent for an hour;
    "stalled" when it was silent for five of its own heartbeats (60 s at least), here or on another host.
    """
    if manifest["status"] != schema.RUNNING:
        return manifest["status"]
    here = manifest["host"] == host
    if here and not is_alive(manifest["pid"], manifest["process_started"]):
        return schema.CRASHED
    silence = (now - _time(manifest["heartbeat"])).total_seconds()
    limit = max(SILENCE_SECONDS, SILENT_BEATS * manifest["heartbeat_seconds"])
    if not here and silence > max(GONE_SECONDS, limit):
        return schema.CRASHED
    return schema.STALLED if silence > limit else schema.RUNNING


def _whereabouts(manifest: Mapping[str, Any], now: datetime, host: str) -> str:
    """Say what is known of the process of a run that has not ended; "" for one that has."""
    if manifest["status"] != schema.RUNNING:
        return ""
    seconds = max((now - _time(manifest["heartbeat"])).total_seconds(), 0.0)
    ago = next(f"{seconds / size:.0f} {unit}" for size, unit in UNITS if seconds >= 2 * size or size == 1)
    process = f"process {manifest['pid']} on {manifest['host']}"
    if manifest["host"] != host:
        return f"last sign of life {ago} ago from {process}, which cannot be looked up from {host}"
    there = "is running" if is_alive(manifest["pid"], manifest["process_started"]) else "is gone"
    return f"last sign of life {ago} ago, {process} {there}"


def read_metrics(folder: Path) -> pd.DataFrame:
    """Return metrics.jsonl with the columns name, split, value, step, tokens, seconds, kind; empty without a file.

    Lines that are not whole are left out: the last one may be half-written. Absent numbers are not-a-number, an absent
    kind is "".
    """
    rows = []
    for line in _lines(folder / schema.METRICS):
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
        if path.is_dir():  # pandas would read all files in it
            raise FormatError(f"{path} is a folder, expected a Parquet file")
        frame = pd.read_parquet(path, columns=None if columns is None else list(columns))
    except FileNotFoundError:
        raise FormatError(f"{folder.name} keeps no predictions ({schema.PREDICTIONS} is missing)") from None
    except (OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
        raise FormatError(f"{path} is not a readable Parquet file ({error})") from None
    missing = set(TEXT_COLUMNS) - set(frame.columns)
    if missing:
        raise FormatError(f"{path} lacks the columns {', '.join(sorted(missing))}")
    for column in TEXT_COLUMNS:
        kind = pd.api.types.infer_dtype(frame[column], skipna=False)
        if kind not in ("string", "empty"):
            raise FormatError(f"{path}: the column {column} holds values of the type {kind}, expected text")
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
    _checked(MIXES, history, str(path))
    return history


def log_tail(folder: Path, lines: int = 200) -> str:
    """Return the last lines of log.txt, "" when there is none."""
    return "\n".join(_lines(folder / schema.LOG)[-lines:])


def remove_run(summary: RunSummary, force: bool = False) -> None:
    """Delete a run folder for good.

    Args:
        summary: of the run.
        force: even if a process may still be writing it; that process then stops at its next write.

    Raises:
        UsageError: a process may still be writing it.
    """
    if summary.alive and not force:
        raise UsageError(
            f"run {summary.id} is {summary.status} ({summary.whereabouts}): stop it first, or remove it with --force"
        )
    lock = RunLock(summary.folder, force)
    try:
        remove_folder(summary.folder)
    finally:
        lock.release()


def sweep_store(store: Path) -> None:
    """Remove what killed processes left in a run store and in its runs, by dead owner or age (see `files.sweep`)."""
    sweep(store)
    for folder in run_folders(store):
        try:
            for place in (folder, *(entry for entry in folder.iterdir() if entry.is_dir() and entry.name[0] != ".")):
                sweep(place)
        except OSError as error:  # another process removes it, or it is not ours to write
            logger.info("%s is not swept: %s", folder, error)


def _manifest(folder: Path) -> Manifest:
    document = read_json(folder / schema.MANIFEST)
    version = document.get("schema_version") if isinstance(document, dict) else None
    if isinstance(version, int) and version > schema.SCHEMA_VERSION:
        raise FormatError(
            f"run.json has schema version {version}, this toolkit reads up to {schema.SCHEMA_VERSION}: "
            "update the toolkit"
        )
    manifest = _checked(MANIFEST, document, schema.MANIFEST)
    for key in ("started", "heartbeat", "ended"):
        if manifest[key] is not None:
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
    if not 1970 <= time.year < 2200:
        raise FormatError(f"{schema.MANIFEST}: {text!r} is not the time of a run")
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def _metric_line(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
        clean = {key: row.get(key, "" if key == "kind" else None) for key in METRIC_COLUMNS}
        clean["value"] = float(row["value"])  # "nan" and "inf" are written as texts
        for key in ("step", "tokens", "seconds"):
            clean[key] = float("nan") if clean[key] is None else float(clean[key])
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError):
        return None
    return clean if all(isinstance(clean[key], str) for key in ("name", "split", "kind")) else None


def _lines(path: Path) -> list[str]:
    """Return the lines of a file that is only ever appended to; none where there is no such file."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except (FileNotFoundError, IsADirectoryError):
        return []


def _short(error: Exception, folder: Path) -> str:
    """Return the message without the folder, which stands beside it anyway."""
    return str(error).replace(f"{folder}/", "")
