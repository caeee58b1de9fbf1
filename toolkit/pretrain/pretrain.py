"""Pretraining from text to an exported model folder, and going on with it: what `toolkit pretrain` does."""

import logging
import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from toolkit.bilm.folder import VOCABULARY
from toolkit.config import Settings, cache_folder, from_saved
from toolkit.errors import DataError, FormatError, UsageError
from toolkit.files import read_toml
from toolkit.pretrain import checkpoint
from toolkit.pretrain.distribute import ALONE, Replicas, choose
from toolkit.pretrain.schedule import Schedule
from toolkit.pretrain.trainer import Trainer
from toolkit.runs.bystander import Bystander
from toolkit.runs.find import find_run
from toolkit.runs.lock import RunLock
from toolkit.runs.reader import Run, load_run
from toolkit.runs.schema import CONFIG, MANIFEST, UNREADABLE
from toolkit.runs.writer import RunWriter
from toolkit.text.prepare import Prepared, prepare
from toolkit.text.vocab import Vocabulary

logger = logging.getLogger(__name__)

JOINED = "joined_batch"  # key of the manifest: rows that all replicas together read in a step
ADAPTED = "adapted_from"  # what the manifest and the card of an adapted model's run say of its parent
DECAYED = "decays"  # what the manifest of a run that decays another one says of it
SOURCES = TypeAdapter(dict[Literal["corpus", "valid"], list[str]])  # key of the manifest: the texts
EPOCHS_A_MINUTE = 60  # more than any text worth training on is read in


def pretrain(
    corpus: Sequence[str | Path],
    settings: Settings,
    valid: Sequence[str | Path] | None = None,
    vocabulary: Path | None = None,
    name: str | None = None,
) -> dict[str, Any]:
    """Train a biLM on text and export it; each worker of a job (see `distribute`) calls this.

    Args:
        corpus: files, folders and globs; files named valid… are the held-out text.
        settings: all settings; `[text]`, `[vocabulary]`, `[model]` and `[pretrain]` matter.
        valid: files of held-out text instead.
        vocabulary: a vocabulary file; None builds one from the corpus.
        name: of the run; None takes the preset's.

    Returns:
        the JSON document of `toolkit pretrain`; "stopped" is true where Ctrl-C ended it before its time.

    Raises:
        UsageError, DataError: see `prepare`, `Batches` and `Vocabulary.load`; nothing has been written then.
        ToolkitError: the loss is no longer a finite number; the run then holds the last good weights.
    """
    replicas = choose()
    with replicas.watching(lambda: "no step has been taken: start all workers again"):
        with replicas.chief_first():
            prepared = prepare(corpus, valid, settings.text, settings.pretrain.valid_fraction, cache_folder(settings))
        trainer = Trainer(prepared, _vocabulary(prepared, vocabulary, settings), settings, replicas)
        extra = {
            "corpus": prepared.description,
            "compute_dtype": trainer.graph.dtype.name,
            "sources": {"corpus": absolute(corpus), "valid": absolute(valid or [])},
            JOINED: trainer.batches.batch_size,
        }
        run = _begun(trainer, settings, name or settings.pretrain.preset, extra)
    with run:
        return trainer.run(run)


def _begun(trainer: Trainer, settings: Settings, name: str, extra: Mapping[str, Any]) -> RunWriter:
    """Make the run's folder in the chief and tell the others where it is."""
    run = None
    if trainer.replicas.chief:
        seed, data = settings.pretrain.seed, trainer.data_fingerprint
        run = RunWriter.start(settings.paths.runs, "pretrain", name, settings, seed, data_fingerprint=data, extra=extra)
        trainer.vocabulary.save(run.folder / VOCABULARY)
    folder = settings.paths.runs / trainer.replicas.from_chief(lambda: run.id)
    return run or Bystander(folder)


def resume(store: Path, run_text: str, limits: Mapping[str, Any], force: bool = False) -> dict[str, Any]:
    """Resume a run from its latest sound checkpoint; the result is that of a run which never stopped.

    Args:
        store: the run store.
        run_text: what names the run, see `find_run`.
        limits: "steps", "epochs" or "minutes" that replace the run's own; others keep it exact.
        force: take the run over even if a process may still be writing it; that process then stops at its next write.

    Returns:
        as `pretrain`.

    Raises:
        UsageError: there is no such run, it is no pretraining run, or another process writes it.
        DataError: the text is no longer what it was.
        FormatError: there is no sound checkpoint.
    """
    replicas = choose()
    with ExitStack() as held:
        with replicas.watching(lambda: "no step has been taken: start all workers again"):
            folder = find_run(store, run_text).folder
            lock = held.enter_context(RunLock(folder, force)) if replicas.chief else None
            _, trainer, settings = reopen(store, run_text, limits, replicas=replicas, running=force)
            step = trainer.step
            replicas.everyone(None)  # all have read the run before the chief marks it as running
            change = _change_of_schedule(folder, trainer, limits)
        with RunWriter.resume(folder, settings, step, lock) if lock else Bystander(folder) as writer:
            if change:
                writer.log(change)
                logger.info("%s", change)
            return trainer.run(writer)


def _change_of_schedule(folder: Path, trainer: Trainer, limits: Mapping[str, Any]) -> str | None:
    """Say what a new budget does to the learning rate; None if the budget or the rate is as before."""
    old = _saved_settings(folder).pretrain
    if not limits or old.schedule == "constant":
        return None
    schedule, step = trainer.standing.schedule, trainer.step
    before = Schedule(old, trainer.total_steps_of(old), schedule.plan).rate(step)
    now = schedule.rate(step)
    if math.isclose(before, now, rel_tol=1e-3):
        return None
    return (
        f"the budget of this run has changed, and the {old.schedule} schedule with it: at step {step:,} the learning "
        f"rate is {now:.3g}, by the old budget it would be {before:.3g}"
    )


def decay(
    store: Path, run_text: str, steps: int | None, minutes: float | None, name: str | None = None
) -> dict[str, Any]:
    """Start a run at the latest checkpoint of another and let the learning rate fall linearly to zero.

    The other run stays as it is and can be resumed: so a training whose end is not known yields a finished model at
    any time (warm-up, stable, decay; Hägele et al. 2024, arXiv 2405.18392).

    Args:
        store: the run store.
        run_text: what names the other run, see `find_run`; it may be running.
        steps, minutes: of the decay, counted from the checkpoint; one of them.
        name: of the new run; None takes the other's name and "-decayed".

    Returns:
        as `pretrain`.

    Raises:
        UsageError, DataError, FormatError: as `resume`; neither steps nor minutes are given, or both.
    """
    if bool(steps) == bool(minutes):
        raise UsageError("a decay needs a budget: give either --steps or --minutes, counted from the checkpoint")
    replicas = choose()
    with replicas.watching(lambda: "no step has been taken: start all workers again"):
        old = find_run(store, run_text)
        start = checkpoint.latest(old.folder)
        if minutes:
            # More passes than steps so far and minutes to come can make: the minutes alone end the decay.
            epochs = start.step + EPOCHS_A_MINUTE * math.ceil(minutes)
            limits = {"minutes": start.seconds / 60 + minutes, "steps": 0, "epochs": epochs}
        else:
            limits = {"minutes": 0.0, "steps": start.step + steps}
        limits |= {"schedule": "linear", "warmup_steps": 0, "patience": 0}
        run, trainer, settings = reopen(store, run_text, limits, replicas=replicas, running=True)
        trainer.standing.begin_at(trainer.step)
        extra = {key: run.manifest["extra"][key] for key in ("corpus", "compute_dtype", "sources")}
        extra |= {JOINED: trainer.batches.batch_size, DECAYED: {"run": old.id, "step": trainer.step}}
        writer = _begun(trainer, settings, name or f"{old.name}-decayed", extra)
    with writer:
        return trainer.run(writer)


def reopen(
    store: Path,
    run_text: str,
    limits: Mapping[str, Any],
    adapted: bool = False,
    replicas: Replicas = ALONE,
    running: bool = False,
) -> tuple[Run, Trainer, Settings]:
    """Return a run, its trainer at the latest sound checkpoint and its settings with new limits.

    Args and errors are those of `resume`; `adapted` says which of the two commands the run must be of, `running`
    whether it may still run. The joined batch stays what it was, however many replicas share it now.
    """
    old = find_run(store, run_text)
    if old.kind != "pretrain":
        raise UsageError(f"{old.id} is a run of kind {old.kind!r}: only pretraining runs can be resumed")
    if old.status == UNREADABLE:
        raise FormatError(f"{old.id} cannot be resumed: {old.problem}")
    if old.alive and not running:
        raise UsageError(
            f"{old.id} is {old.status} ({old.whereabouts}): stop it first; if it is surely gone, add --force"
        )
    run = load_run(old.folder)
    if (ADAPTED in run.manifest["extra"]) != adapted:
        right = "pretrain" if adapted else "adapt"
        raise UsageError(f"{old.id} is a run of `toolkit {right}`: go on with `toolkit {right} --resume {run_text}`")
    settings = _saved_settings(old.folder)
    settings = settings.model_copy(update={"pretrain": settings.pretrain.model_copy(update=dict(limits))})
    joined = run.manifest["extra"].get(JOINED, settings.pretrain.batch_size)
    if joined % replicas.count:
        raise UsageError(f"{old.id} reads {joined} rows a step: {replicas} cannot share them evenly")
    share = {"batch_size": joined // replicas.count}
    settings = settings.model_copy(update={"pretrain": settings.pretrain.model_copy(update=share)})
    sources = _sources(run)
    cache = cache_folder(settings)
    with replicas.chief_first():
        prepared = prepare(sources["corpus"], sources["valid"], settings.text, settings.pretrain.valid_fraction, cache)
    trainer = Trainer(prepared, Vocabulary.load(old.folder / VOCABULARY), settings, replicas)
    if trainer.data_fingerprint != run.manifest["data_fingerprint"]:
        raise DataError(
            f"the text of {old.id} has changed: it was {run.manifest['data_fingerprint']}, now it is "
            f"{trainer.data_fingerprint}; start a new run, or restore {', '.join(sources['corpus'])}"
        )
    trainer.restore(old.folder)
    return run, trainer, settings


def _saved_settings(folder: Path) -> Settings:
    """Return the settings in a run folder.

    Raises:
        FormatError: config.toml is missing or damaged, or no configuration of this toolkit.
    """
    path = folder / CONFIG
    try:
        return from_saved(read_toml(path))
    except (AttributeError, UsageError) as error:
        raise FormatError(f"{path} does not hold the settings of a run ({error})") from None


def _sources(run: Run) -> dict[str, list[str]]:
    """Return the texts that a run was trained on."""
    try:
        return SOURCES.validate_python(run.manifest["extra"].get("sources"))
    except ValidationError:
        raise FormatError(
            f"{run.summary.folder / MANIFEST} does not name the texts that {run.summary.id} was trained on "
            f"(extra.sources): it cannot be resumed"
        ) from None


def absolute(patterns: Sequence[str | Path]) -> list[str]:
    """Return patterns as they are meant whatever the working folder is."""
    return [str(Path(pattern).absolute()) for pattern in patterns]


def _vocabulary(prepared: Prepared, path: Path | None, settings: Settings) -> Vocabulary:
    if path is not None:
        return Vocabulary.load(path)
    return Vocabulary.from_counts(
        prepared.words, prepared.counts, settings.vocabulary.size, settings.vocabulary.min_count
    )
