"""One run: a classifier trained with one seed, or one a fold, scored, and all of it written to a run folder."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tasks.adapter.bag import VERSION
from tasks.adapter.checkpoint import FOLDER
from tasks.adapter.epochs import Mixes
from tasks.adapter.finetuning import weights_told
from tasks.adapter.head import find_head
from tasks.adapter.logistic import SOLVER
from tasks.adapter.representation import BESIDE_BAG, Representation
from tasks.adapter.results import mean_mixes, metric_of, mix_history, mix_lines, predictions_of, result_of, sentence_of
from tasks.adapter.rounds import Prepared, train_rounds
from tasks.adapter.unfinished import taken_over
from tasks.adapter.wordvectors import content_of, label_of
from tasks.registry import data_fingerprint
from toolkit.config import Evaluate, Settings
from toolkit.files import remove_folder
from toolkit.runs import schema
from toolkit.runs.writer import RunWriter

logger = logging.getLogger(__name__)

REPORTED = ("dev", "test")


@dataclass(frozen=True)
class Outcome:
    """What one run gave.

    Attributes:
        folder: of the run.
        metric: of the task.
        gold, answers: texts of each reported split.
        mixes: the mixes that were scored with by place: weights of the layers and gamma, over folds their means.
        bilm: what became of its weights, see `finetuning.weights_told`; None of dumps.
    """

    folder: Path
    metric: str
    gold: dict[str, np.ndarray]
    answers: dict[str, np.ndarray]
    mixes: Mixes
    bilm: dict[str, Any] | None = None


def own_settings(settings: Settings, representation: Representation, seed: int) -> Settings:
    """Return the settings of one run, which name one mix and one seed."""
    own = {"mix": representation.mix, "x_k": representation.x_k, "seed": seed, "seeds": 1}
    return settings.model_copy(update={"evaluate": settings.evaluate.model_copy(update=own)})


def run_seed(
    prepared: Prepared,
    representation: Representation,
    settings: Settings,
    seed: int,
    store: Path,
    anew: bool = False,
) -> Outcome:
    """Train with one seed, score on dev and test, and write all of it to a run folder.

    A task in folds is trained once a fold; its score is that of all examples, each predicted by the round that did not
    train on it. A run of the same training that was left in the middle goes on behind its last epoch, exactly, unless
    `anew`.
    """
    task, source, data = prepared.task, prepared.source, prepared.data
    settings = own_settings(settings, representation, seed)
    own = settings.evaluate
    name = _name(prepared, representation, own)
    extra = {
        "task": task.name,
        "task_version": task.version,
        "mix": representation.mix,
        "x_k": representation.x_k,
        "head": own.head,
        "representation": representation.shape_text,
        "labels": list(task.labels),
        "model": source.name,
        "layers": source.n_layers,
        "source_state": source.state,
        "data": prepared.splits.description,
        **({} if prepared.table is None else {"word_vectors": prepared.table.coverage}),
        schema.INPUTS: inputs_of(own),
    }
    marks = source.fingerprint, data_fingerprint(task, prepared.splits)
    group = schema.group_of("evaluate", settings, task.name, *marks, extra[schema.INPUTS])
    left = None if anew else taken_over(store, group, seed, source.state, settings)
    writer, states = left or (RunWriter.start(store, "evaluate", name, settings, seed, *marks, extra), [])
    with writer as run:
        if representation.learned and not states:
            logger.info("%s: %s mix: equal weights, untrained", name, representation.mix)
        trainings = train_rounds(prepared, representation, own, seed, run, name, states)
        rows = {split: np.concatenate([t.rows[split] for t in trainings]) for split in REPORTED}
        found = {split: [p for t in trainings for p in t.probabilities[split]] for split in REPORTED}
        answers = {split: data.answers(found[split]) for split in REPORTED}
        every = prepared.examples
        examples = {split: [every[row] for row in rows[split]] for split in REPORTED}
        frames = [predictions_of(examples[s], task.kind, s, found[s], answers[s]) for s in REPORTED]
        run.predictions(pd.concat(frames, ignore_index=True))
        mixes = mean_mixes([t.fitted.best.mixes for t in trainings])
        if representation.learned:
            run.layers(mix_history(trainings, mixes, seed))
        gold = {split: data.gold[rows[split]] for split in REPORTED}
        metrics = [metric_of(data.metric, gold[split], split, answers[split]) for split in REPORTED[::-1]]
        result = result_of(trainings, data, representation, own)
        metrics[1] |= result.pop("dev")
        result["seconds"] = round(run.seconds, 1)
        tuned = [t.classifier.bilm for t in trainings if t.classifier.bilm is not None]
        bilm = weights_told(source, own.finetune_rate, tuned)
        run.results({"metrics": metrics, "mixes": mixes, "bilm": bilm, **result})
        if (run.folder / FOLDER).is_dir():
            remove_folder(run.folder / FOLDER)
    logger.info("%s: %s", name, sentence_of(trainings, metrics, result["seconds"]))
    for line in mix_lines(trainings, mixes, result.get("gates", {})) if representation.learned else ():
        logger.info("%s: %s", name, line)
    return Outcome(run.folder, task.metric, gold, answers, mixes, bilm)


def inputs_of(own: Evaluate) -> dict[str, str]:
    """Return what a result depends on besides settings, model and data, by content, with short names.

    Raises:
        UsageError: there is no such file of word vectors.
    """
    found = {"word_vectors_sha256": content} if (content := content_of(own)) else {}
    found |= {"floor": VERSION} if own.mix.startswith(BESIDE_BAG) else {}
    return found | ({"solver": SOLVER} if find_head(own.head).is_linear else {})


def _name(prepared: Prepared, representation: Representation, own: Evaluate) -> str:
    x_k = f"-x_k-{label_of(own)}" if label_of(own) else ""
    vector = representation.mix + x_k if representation.x_k else f"{representation.mix}-without-x_k"
    place = "" if representation.place == "input" else f"at-{representation.place}"
    fraction = "" if own.train_fraction == 1 else f"{own.train_fraction:g}-of-train"
    tuned = f"tuned-{own.finetune_rate:g}" if own.finetune_rate else ""
    parts = (prepared.task.name, prepared.source.label, vector, place, own.head, tuned, fraction, f"s{own.seed}")
    return "-".join(part for part in parts if part)
