"""Writing a run folder: one process, whole lines, and a status that stays honest whatever ends the process."""

import importlib.metadata
import json
import logging
import math
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, TextIO

import pandas as pd

import toolkit
from toolkit.config import Settings
from toolkit.errors import DiskFullError, FormatError, ToolkitError
from toolkit.files import FULL_DISK, atomic_path, json_text, read_json, sweep, write_json, write_text
from toolkit.process import start_mark
from toolkit.runs import schema
from toolkit.runs.lock import RunLock
from toolkit.runs.reader import sweep_store
from toolkit.runs.schema import Manifest
from toolkit.runs.settings_file import to_toml

logger = logging.getLogger(__name__)

PACKAGES = ("tensorflow", "keras", "numpy", "h5py", "pandas", "scikit-learn", "elmo-toolkit")
PREDICTION_COLUMNS = ("example_id", "split", "gold", "predicted", "probabilities")
WRITER = ("pid", "process_started", "host")  # keys of the manifest that name the process
TOP_FIELDS = ("model_fingerprint", "data_fingerprint", "seed", "name")


class LostRunError(ToolkitError):
    """Another process writes the run now, or it was removed: this one must not write it any more."""


class RunWriter:
    """A run that is being written; use it as a context manager.

    Leaving the block sets the status: `done`; `failed` with the message after an exception; `stopped` after Ctrl-C;
    `killed` after SIGTERM. Exceptions are passed on. A process that cannot run any code any more (kill -9, power cut)
    leaves `running` behind, which readers tell from a living run by its process and its heartbeat.

    Attributes:
        folder: the run folder.
        id: its name.
    """

    def __init__(self, folder: Path, manifest: Manifest, settings: Settings, lock: RunLock) -> None:
        self.folder = folder
        self._lock = lock
        self.id = folder.name
        self._manifest = manifest
        self._settings = settings
        self._began = time.monotonic()
        self._beat = -math.inf
        self._stopped = False
        self._killed = False
        self._previous: Any = None
        self._metrics: TextIO = (folder / schema.METRICS).open("a", encoding="utf-8", buffering=1)
        self._log: TextIO = (folder / schema.LOG).open("a", encoding="utf-8", buffering=1)
        self._write(first=True)

    @classmethod
    def start(
        cls,
        store: Path,
        kind: schema.Kind,
        name: str,
        settings: Settings,
        seed: int,
        model_fingerprint: str | None = None,
        data_fingerprint: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> "RunWriter":
        """Make the folder `<UTC time>-<kind>-<name>`, with -2, -3 … behind it when taken, and write its first files.

        Args:
            store: the run store, made when missing.
            kind: "pretrain", "evaluate" or "senses".
            name: short and readable, such as "sst2-learned-s1"; characters that a file name should not have become "-".
            settings: the resolved settings of this very run.
            seed: the run's seed.
            model_fingerprint: of the model that the run reads, if any.
            data_fingerprint: of the corpus, task data or sentences that the run reads, if known already.
            extra: JSON values that the kind adds; "task" names the task and belongs to the group.
        """
        now = _now()
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:100] or "run"
        folder = _new_folder(Path(store), f"{now.strftime('%Y%m%dT%H%M%S')}-{kind}-{name}")
        manifest: Manifest = {
            "schema_version": schema.SCHEMA_VERSION,
            "id": folder.name,
            "kind": kind,
            "name": name,
            "group": "",  # filled at each write
            "seed": seed,
            "status": schema.RUNNING,
            "started": now.isoformat(timespec="seconds"),
            "ended": None,
            "heartbeat": now.isoformat(timespec="seconds"),
            "heartbeat_seconds": schema.HEARTBEAT_SECONDS,
            "progress": None,
            "seconds_left": None,
            "pid": os.getpid(),
            "process_started": start_mark(os.getpid()),
            "host": socket.gethostname(),
            "argv": list(sys.argv),
            "versions": _versions(),
            "git": _git_revision(),
            "model_fingerprint": model_fingerprint,
            "data_fingerprint": data_fingerprint,
            "extra": dict(extra or {}),
        }
        lock = RunLock(folder)
        write_text(folder / schema.CONFIG, to_toml(settings))
        return cls(folder, manifest, settings, lock)

    @classmethod
    def resume(cls, folder: Path, settings: Settings, step: int, lock: RunLock) -> "RunWriter":
        """Continue to write a run whose process has ended.

        Args:
            folder: of the run.
            settings: the resolved settings from now on.
            step: of the checkpoint it resumes from; metrics of later steps are dropped, since those steps come again.
            lock: of the folder, acquired before the run's state was read.
        """
        sweep(folder)
        manifest: Manifest = read_json(folder / schema.MANIFEST)
        now = _now().isoformat(timespec="seconds")
        manifest.update(status=schema.RUNNING, ended=None, heartbeat=now, pid=os.getpid(), host=socket.gethostname())
        manifest.update(process_started=start_mark(os.getpid()), argv=list(sys.argv), versions=_versions())
        manifest.pop("message", None)
        manifest["extra"] = {**manifest["extra"], "resumed": [*manifest["extra"].get("resumed", []), [now, step]]}
        rows = _metrics_until(folder / schema.METRICS, step)
        write_text(folder / schema.METRICS, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        write_text(folder / schema.CONFIG, to_toml(settings))
        writer = cls(folder, manifest, settings, lock)
        writer._began -= max((row["seconds"] for row in rows), default=0.0)
        writer.log(f"resumed at step {step}")
        return writer

    def __enter__(self) -> "RunWriter":
        if threading.current_thread() is threading.main_thread():  # elsewhere Python sets no signal handlers
            self._previous = signal.signal(signal.SIGTERM, self._terminate)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGTERM, self._previous)
            self._previous = None
        if self._killed:
            self._manifest["status"] = schema.KILLED
        elif self._stopped or isinstance(error, KeyboardInterrupt):
            self._manifest["status"] = schema.STOPPED
        elif error is None:
            self._manifest["status"] = schema.DONE
        else:
            self._manifest["status"] = schema.FAILED
            text = str(error)
            self._manifest["message"] = text if isinstance(error, ToolkitError) else f"{type(error).__name__}: {text}"
            if not isinstance(error, LostRunError):
                with _as_far_as_the_disk_allows():
                    self.log(self._manifest["message"])
        try:
            self._close()
        except LostRunError as lost:
            if error is None:
                raise
            logger.warning("%s", lost)
        finally:
            self._lock.release()

    def _close(self) -> None:
        """Write the last manifest and close the files."""
        now = _now().isoformat(timespec="seconds")
        self._manifest.update(ended=now, heartbeat=now, seconds_left=None)
        if self._manifest["status"] == schema.DONE:
            self._manifest["progress"] = 1.0
        try:
            self._write()
        except DiskFullError:
            self._write_in_place()
        finally:
            for file in (self._metrics, self._log):
                with _as_far_as_the_disk_allows():
                    file.close()

    def stop_gracefully(self) -> None:
        """Say that the run ends before its time, for a caller that catches KeyboardInterrupt to finish in order.

        Such a caller catches the interrupt inside the block, calls this, then saves what it has and leaves the block
        normally. The status becomes `stopped` (`killed` after SIGTERM) instead of `done`.
        """
        self._stopped = True

    @property
    def seconds(self) -> float:
        """Seconds of writing so far, those before a resume included."""
        return time.monotonic() - self._began

    def metric(
        self,
        name: str,
        value: float,
        step: int | None = None,
        tokens: int | None = None,
        split: str = "train",
        kind: str | None = None,
    ) -> None:
        """Append one value to metrics.jsonl as a whole line, and beat.

        Args:
            name: such as "loss", "perplexity", "accuracy", "tokens_per_second".
            value: a number; not-a-number and infinity are kept, as texts.
            step: the optimiser's steps so far.
            tokens: the training tokens read so far.
            split: "train", "valid", "dev" or "test".
            kind: of a perplexity or loss: "full" or "sampled" softmax.
        """
        value = float(value)
        line: dict[str, Any] = {"name": name, "value": value if math.isfinite(value) else str(value), "split": split}
        line["seconds"] = round(self.seconds, 3)
        line |= {k: v for k, v in (("step", step), ("tokens", tokens), ("kind", kind)) if v is not None}
        self._metrics.write(json.dumps(line, ensure_ascii=False) + "\n")
        self.heartbeat()

    def heartbeat(self, progress: float | None = None, seconds_left: float | None = None) -> None:
        """Say that the run is alive; cheap to call at every step, since run.json is written every ten seconds at most.

        Args:
            progress: share of the work done, 0 to 1; None keeps the last.
            seconds_left: the expected rest; None keeps the last.
        """
        for key, value in (("progress", progress), ("seconds_left", seconds_left)):
            if value is not None:
                self._manifest[key] = float(value) if math.isfinite(value) else None  # type: ignore[literal-required]
        if time.monotonic() - self._beat >= schema.HEARTBEAT_SECONDS:
            self._manifest["heartbeat"] = _now().isoformat(timespec="seconds")
            self._write()

    def update(self, **fields: Any) -> None:
        """Set what is known only later; keys that the manifest does not have at its top go to `extra`."""
        for key, value in fields.items():
            (self._manifest if key in TOP_FIELDS else self._manifest["extra"])[key] = value  # type: ignore[literal-required]
        self._write()

    def results(self, document: Mapping[str, Any]) -> None:
        """Write results.json: "metrics" as a list of `schema.Metric`, beside it what the kind adds.

        Raises:
            ValueError: a metric has no name, split or value, or a number is not finite.
        """
        for metric in document["metrics"]:
            missing = {"name", "split", "value"} - metric.keys()
            if missing:
                raise ValueError(f"metric {metric} lacks {', '.join(sorted(missing))}")
        self.require_mine()
        write_json(self.folder / schema.RESULTS, dict(document))

    def predictions(self, frame: pd.DataFrame) -> None:
        """Write predictions.parquet.

        Args:
            frame: one row an example: example_id (text), split, gold, predicted (labels, or the tags of
                a sentence joined by `toolkit.metrics.TAG_SEPARATOR`), probabilities (a list in the order of the task's
                labels); "text" may be added and is then shown beside the example.

        Raises:
            ValueError: a column is missing, or an example_id stands twice in a split.
        """
        missing = [column for column in PREDICTION_COLUMNS if column not in frame.columns]
        if missing:
            raise ValueError(f"predictions lack the columns {', '.join(missing)}")
        twice = frame.duplicated(["split", "example_id"])
        if twice.any():
            raise ValueError(f"example_id {frame['example_id'][twice].iloc[0]!r} stands twice in one split")
        self.require_mine()
        with atomic_path(self.folder / schema.PREDICTIONS) as path:
            frame.to_parquet(path, index=False)

    def layers(self, history: Sequence[Mapping[str, Any]]) -> None:
        """Write layers.json: the scalar mix over training.

        Args:
            history: one entry a logged step: step, seed, weights (after the softmax, one a layer), gamma. The last
                entry is that of the weights which the scores were computed with.
        """
        self.require_mine()
        write_json(self.folder / schema.LAYERS, [dict(entry) for entry in history])

    def log(self, text: str) -> None:
        """Append a line with the UTC time to log.txt."""
        self._log.write(f"{_now().isoformat(timespec='seconds')}  {text}\n")

    def require_mine(self) -> None:
        """Check that no other process has taken over this run, and that it is still there; call it before a write.

        Raises:
            LostRunError: run.json names another process, or is gone.
        """
        try:
            found = read_json(self.folder / schema.MANIFEST)
        except FormatError:
            if (self.folder / schema.MANIFEST).exists():  # damaged: it is written again
                return
            raise LostRunError(f"run {self.id} was removed while this process wrote it; it stops here") from None
        if isinstance(found, dict) and any(found.get(key) != self._manifest[key] for key in WRITER):
            raise LostRunError(
                f"run {self.id} was taken over by process {found.get('pid')} on {found.get('host')} (--force); this "
                f"process, {self._manifest['pid']} on {self._manifest['host']}, stops and leaves it as it is"
            )

    def _write(self, first: bool = False) -> None:
        if not first:
            self.require_mine()
        task = self._manifest["extra"].get("task")
        self._manifest["group"] = schema.group_of(
            self._manifest["kind"],
            self._settings,
            task,
            self._manifest["model_fingerprint"],
            self._manifest["data_fingerprint"],
            self._manifest["extra"].get(schema.INPUTS),
        )
        write_json(self.folder / schema.MANIFEST, self._manifest)
        self._beat = time.monotonic()

    def _write_in_place(self) -> None:
        """The last word on a full disk: not atomic, but within the blocks that the file has already."""
        with _as_far_as_the_disk_allows(), (self.folder / schema.MANIFEST).open("r+b") as file:
            file.write(json_text(self._manifest).encode("utf-8"))
            file.truncate()

    def _terminate(self, signum: int, frame: FrameType | None) -> None:
        self._killed = True
        if callable(self._previous):  # the command line turns the signal into KeyboardInterrupt
            self._previous(signum, frame)
        raise SystemExit(128 + signum)


@contextmanager
def _as_far_as_the_disk_allows() -> Iterator[None]:
    """Go on where the disk is full, at the end of a run that failed: what failed it is on its way to the user."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL_DISK:
            raise
        logger.warning("the disk is full: the run's last lines could not be written")


def _metrics_until(path: Path, step: int) -> list[dict[str, Any]]:
    rows = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
            if row.get("step", 0) <= step:
                rows.append(row | {"seconds": float(row["seconds"])})
        except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError):
            continue  # the line that the process was writing when it was killed, or damage
    return rows


def _now() -> datetime:
    return datetime.now(UTC)


def _new_folder(store: Path, name: str) -> Path:
    store.mkdir(parents=True, exist_ok=True)
    sweep_store(store)
    number = 1
    while True:
        folder = store / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:  # another process took it: mkdir decides, so no two runs share a folder
            number += 1
        else:
            return folder


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def _git_revision() -> str | None:
    """Return the revision of the checkout that holds the toolkit; None for an installed package."""
    root = Path(toolkit.__file__).parents[1]
    if not (root / ".git").exists():
        return None

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=20
        ).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):  # no git, or not a healthy checkout: the run matters more
        return None
