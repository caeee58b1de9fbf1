"""Pretraining from text to an exported model folder, and going on with it: what `toolkit pretrain` does."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.bilm.folder import VOCABULARY
from toolkit.config import Settings, cache_folder, from_saved
from toolkit.errors import DataError, UsageError
from toolkit.pretrain.trainer import Trainer
from toolkit.runs.find import find_run
from toolkit.runs.reader import Run, read_run
from toolkit.runs.schema import CONFIG, RUNNING
from toolkit.runs.writer import RunWriter
from toolkit.text.prepare import Prepared, prepare
from toolkit.text.vocab import Vocabulary

ADAPTED = "adapted_from"  # what the manifest and the card of an adapted model's run say of its parent


def pretrain(
    corpus: Sequence[str | Path],
    settings: Settings,
    valid: Sequence[str | Path] | None = None,
    vocabulary: Path | None = None,
    name: str | None = None,
) -> dict[str, Any]:
    """Train a biLM on text and export it.

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
    prepared = prepare(corpus, valid, settings.text, settings.pretrain.valid_fraction, cache_folder(settings))
    trainer = Trainer(prepared, _vocabulary(prepared, vocabulary, settings), settings)
    run = RunWriter.start(
        settings.paths.runs,
        "pretrain",
        name or settings.pretrain.preset,
        settings,
        settings.pretrain.seed,
        data_fingerprint=trainer.data_fingerprint,
        extra={
            "corpus": prepared.description,
            "compute_dtype": trainer.graph.dtype.name,
            "sources": {"corpus": absolute(corpus), "valid": absolute(valid or [])},
        },
    )
    trainer.vocabulary.save(run.folder / VOCABULARY)
    with run:
        return trainer.run(run)


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
    run, trainer, settings = reopen(store, run_text, limits)
    with RunWriter.resume(run.summary.folder, settings, trainer.step) as writer:
        return trainer.run(writer)


def reopen(
    store: Path, run_text: str, limits: Mapping[str, Any], adapted: bool = False
) -> tuple[Run, Trainer, Settings]:
    """Return a run, its trainer at the latest sound checkpoint and its settings with new limits.

    Args and errors are those of `resume`; `adapted` says which of the two commands the run must be of.
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
    sources = run.manifest["extra"]["sources"]
    cache = cache_folder(settings)
    prepared = prepare(sources["corpus"], sources["valid"], settings.text, settings.pretrain.valid_fraction, cache)
    trainer = Trainer(prepared, Vocabulary.load(old.folder / VOCABULARY), settings)
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
