"""Pretraining from text to an exported model folder, and going on with it: what `toolkit pretrain` does."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.bilm.folder import VOCABULARY
from toolkit.config import Settings, cache_folder, from_saved
from toolkit.errors import DataError, UsageError
from toolkit.pretrain.distribute import ALONE, Replicas, choose
from toolkit.pretrain.trainer import Trainer
from toolkit.runs.bystander import Bystander
from toolkit.runs.find import find_run
from toolkit.runs.reader import Run, read_run
from toolkit.runs.schema import CONFIG, RUNNING
from toolkit.runs.writer import RunWriter
from toolkit.text.prepare import Prepared, prepare
from toolkit.text.vocab import Vocabulary

JOINED = "joined_batch"  # key of the manifest: rows that all replicas together read in a step
ADAPTED = "adapted_from"  # what the manifest and the card of an adapted model's run say of its parent


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


def resume(store: Path, run_text: str, limits: Mapping[str, Any]) -> dict[str, Any]:
    """Go on with a run from its latest sound checkpoint; the result is that of a run which never stopped.

    Args:
        store: the run store.
        run_text: the run's id, folder or a part of its name.
        limits: "steps", "epochs" or "minutes" that replace the run's own; others keep it exact.

    Returns:
        as `pretrain`.

    Raises:
        UsageError: there is no such run, it is no pretraining run, or it is still running.
        DataError: the text is no longer what it was.
        FormatError: there is no sound checkpoint.
    """
    replicas = choose()
    with replicas.watching(lambda: "no step has been taken: start all workers again"):
        run, trainer, settings = reopen(store, run_text, limits, replicas=replicas)
        folder, step = run.summary.folder, trainer.step
        replicas.everyone(None)  # all have read the run before the chief marks it as running
    with RunWriter.resume(folder, settings, step) if replicas.chief else Bystander(folder) as writer:
        return trainer.run(writer)


def reopen(
    store: Path, run_text: str, limits: Mapping[str, Any], adapted: bool = False, replicas: Replicas = ALONE
) -> tuple[Run, Trainer, Settings]:
    """Return a run, its trainer at the latest sound checkpoint and its settings with new limits.

    Args and errors are those of `resume`; `adapted` says which of the two commands the run must be of. The joined batch
    stays what it was, however many replicas share it now.
    """
    old = find_run(store, run_text)
    if old.kind != "pretrain":
        raise UsageError(f"{old.id} is a run of kind {old.kind!r}: only pretraining runs can be resumed")
    if old.status == RUNNING:
        raise UsageError(f"{old.id} is still running: stop it first")
    run = read_run(store, old.id)
    if (ADAPTED in run.manifest["extra"]) != adapted:
        right = "pretrain" if adapted else "adapt"
        raise UsageError(f"{old.id} is a run of `toolkit {right}`: go on with `toolkit {right} --resume {run_text}`")
    settings = from_saved(tomllib.loads((old.folder / CONFIG).read_text(encoding="utf-8")))
    settings = settings.model_copy(update={"pretrain": settings.pretrain.model_copy(update=dict(limits))})
    joined = run.manifest["extra"].get(JOINED, settings.pretrain.batch_size)
    if joined % replicas.count:
        raise UsageError(f"{old.id} reads {joined} rows a step: {replicas} cannot share them evenly")
    share = {"batch_size": joined // replicas.count}
    settings = settings.model_copy(update={"pretrain": settings.pretrain.model_copy(update=share)})
    sources = run.manifest["extra"]["sources"]
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


def absolute(patterns: Sequence[str | Path]) -> list[str]:
    """Return patterns as they are meant whatever the working folder is."""
    return [str(Path(pattern).absolute()) for pattern in patterns]


def _vocabulary(prepared: Prepared, path: Path | None, settings: Settings) -> Vocabulary:
    if path is not None:
        return Vocabulary.load(path)
    return Vocabulary.from_counts(
        prepared.words, prepared.counts, settings.vocabulary.size, settings.vocabulary.min_count
    )
