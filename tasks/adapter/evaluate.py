"""Evaluating a model on a task: one run for each representation and seed, and the document that sums them up."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tasks.adapter.classifier import Classifier
from tasks.adapter.features import Features, LayerSource, features_of
from tasks.adapter.fit import Epoch, best_epoch, fit, predict, steps_of_epoch
from tasks.adapter.head import find_head
from tasks.adapter.representation import Representation, split_mixes
from tasks.task import Splits, Task
from toolkit.bilm.folder import Model
from toolkit.config import Evaluate, Settings, cache_folder
from toolkit.embed.encoder import Encoder
from toolkit.errors import UsageError
from toolkit.progress import Progress
from toolkit.runs.compare import compare_with
from toolkit.runs.describe_comparison import comparison_document
from toolkit.runs.reader import summarise
from toolkit.runs.writer import RunWriter
from toolkit.stats import bootstrap_interval, t_interval

logger = logging.getLogger(__name__)

REPORTED = ("dev", "test")


@dataclass(frozen=True)
class Prepared:
    """A task ready for training with a model.

    Attributes:
        task, splits: what is asked.
        source: what gives the layers.
        features: the layers of all examples, the splits one behind the other.
        gold: int32 [examples], the index of each one's label.
        rows: the rows of each split, by its name.
    """

    task: Task
    splits: Splits
    source: LayerSource
    features: Features
    gold: np.ndarray
    rows: dict[str, np.ndarray]


@dataclass(frozen=True)
class Outcome:
    """What one run gave.

    Attributes:
        folder: of the run.
        correct: bool [n] of each reported split.
        layer_weights, gamma: the mix that was scored with; None where no layer is in the vector.
    """

    folder: Path
    correct: dict[str, np.ndarray]
    layer_weights: list[float] | None
    gamma: float | None


def source_of(model: Model, settings: Settings) -> LayerSource:
    """Return a model as a source of layers, in the state that the settings name."""
    encoder = Encoder(model, settings.embed.state, settings.embed.batch_tokens)
    spec = model.spec
    return LayerSource(
        str(model.path),
        model.fingerprint,
        settings.embed.state,
        spec.n_layers + 1,
        spec.width,
        encoder.encode,
        spec.directions,
    )


def evaluate(task: Task, source: LayerSource, settings: Settings, store: Path) -> dict[str, Any]:
    """Train and score a classifier for each mix and seed; write one run for each.

    Args:
        task: what is asked; its data is looked for where `settings.paths.data` says, then elsewhere.
        source: what gives the layers; they are computed once and kept in the cache.
        settings: `evaluate.mix` may name several mixes, parted by commas.
        store: the run store.

    Returns:
        the JSON document of `toolkit evaluate`: task, metric, source of the data, model, layers, rows (one a mix) and
        comparisons (each later mix against the first, on the same test examples).

    Raises:
        UsageError: a mix or the head is unknown or does not fit the model.
        DataError: the task's data cannot be had or read, or dumps are of other sentences.
        ToolkitError: training diverged.
    """
    chosen = settings.evaluate
    find_head(chosen.head)
    representations = _representations(source, chosen)
    settings = settings.model_copy(update={"embed": settings.embed.model_copy(update=dict(source.embed))})
    prepared = prepare(task, source, settings)
    seeds = range(chosen.seed, chosen.seed + chosen.seeds)
    rows, folders = [], []
    for representation in representations:
        logger.info("%s, %s: %s", task.name, representation.mix, representation.shape_text)
        outcomes = [run_seed(prepared, representation, settings, seed, store) for seed in seeds]
        rows.append(_row(representation, chosen.head, outcomes))
        folders.append([outcome.folder for outcome in outcomes])
    first, *later = [[summarise(folder) for folder in side] for side in folders]
    return {
        "task": task.name,
        "metric": task.metric,
        "data": prepared.splits.description,
        "model": source.name,
        "model_fingerprint": source.fingerprint,
        "layers": source.n_layers,
        "rows": rows,
        "comparisons": [comparison_document(comparison) for comparison in compare_with(first, later)],
    }


def _representations(source: LayerSource, chosen: Evaluate) -> list[Representation]:
    mixes, x_k = split_mixes(chosen.mix), chosen.x_k
    if source.n_layers == 1 and x_k:
        if "none" in mixes:
            raise UsageError(f"mix 'none' leaves no vector: {source.name} holds one layer and no x_k; take --mix top")
        logger.info("%s holds one layer, which is the mix: no x_k beside it", source.name)
        x_k = False
    if x_k and source.names[0] != "x_k":
        logger.info("x_k of %s is its layer 0; --no-x-k leaves it out", source.name)
    shape = (source.n_layers, source.width, source.directions, source.names)
    return [Representation.parse(mix, x_k, *shape) for mix in mixes]


def prepare(task: Task, source: LayerSource, settings: Settings) -> Prepared:
    """Load a task and the layers of its sentences; errors as in `evaluate`."""
    cache = cache_folder(settings)
    splits = task.load(settings.paths.data, cache)
    logger.info("%s: %s", task.name, splits.description)
    source.check(splits)
    parts = splits.parts()
    examples = [example for part in parts.values() for example in part]
    features = features_of([example.tokens for example in examples], source, splits.fingerprint, cache)
    gold = np.array([task.labels.index(example.label) for example in examples], np.int32)
    borders = np.cumsum([len(part) for part in parts.values()])
    rows = dict(zip(parts, np.split(np.arange(len(examples)), borders[:-1]), strict=True))
    return Prepared(task, splits, source, features, gold, rows)


def run_seed(prepared: Prepared, representation: Representation, settings: Settings, seed: int, store: Path) -> Outcome:
    """Train one classifier with one seed, score it on dev and test, and write all of it to a run folder."""
    task, source = prepared.task, prepared.source
    own = settings.evaluate.model_copy(
        update={"mix": representation.mix, "x_k": representation.x_k, "seed": seed, "seeds": 1}
    )
    vector = representation.mix if representation.x_k else f"{representation.mix}-without-x_k"
    name = "-".join(part for part in (task.name, source.label, vector, own.head, f"s{seed}") if part)
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
        "data": prepared.splits.description,
    }
    with RunWriter.start(
        store,
        "evaluate",
        name,
        settings.model_copy(update={"evaluate": own}),
        seed,
        source.fingerprint,
        prepared.splits.fingerprint,
        extra,
    ) as run:
        began = time.monotonic()
        classifier = Classifier(representation, find_head(own.head), len(task.labels), own, seed)
        start = classifier.layer_weights()
        total = own.epochs * steps_of_epoch(len(prepared.rows["train"]), own)
        with Progress(name, total, "steps") as bar:

            def on_step() -> None:
                bar.advance(1)
                run.heartbeat(bar.count / total)

            def on_epoch(epoch: Epoch) -> None:
                run.metric("loss", epoch.loss, epoch.step)
                run.metric(task.metric, epoch.dev_score, epoch.step, split="dev")
                run.log(f"epoch {epoch.number}: loss {epoch.loss:.4f}, dev {task.metric} {epoch.dev_score:.4f}")

            history = fit(
                classifier,
                prepared.features,
                prepared.gold,
                prepared.rows["train"],
                prepared.rows["dev"],
                own,
                seed,
                on_step,
                on_epoch,
            )
        best = best_epoch(history)
        frames, correct = [], {}
        for split in REPORTED:
            probabilities = predict(classifier, prepared.features, prepared.rows[split], own.batch_size)
            correct[split] = probabilities.argmax(1) == prepared.gold[prepared.rows[split]]
            frames.append(_predictions(task, split, prepared.splits.parts()[split], probabilities))
        run.predictions(pd.concat(frames, ignore_index=True))
        if representation.learned and start:
            begin = replace(best, number=0, step=0, layer_weights=start[0], gamma=start[1])
            mixes = [begin, *(epoch for epoch in history if epoch.number <= best.number)]
            run.layers([{"step": e.step, "seed": seed, "weights": e.layer_weights, "gamma": e.gamma} for e in mixes])
        metrics = [_metric(task, split, correct[split]) for split in REPORTED[::-1]]
        metrics[1] |= {"best_step": best.step, "last": history[-1].dev_score}
        seconds = round(time.monotonic() - began, 1)
        run.results({"metrics": metrics, "best_epoch": best.number, "epochs": len(history), "seconds": seconds})
    test, dev = (100 * metric["value"] for metric in metrics)
    logger.info("%s: dev %.1f (epoch %d of %d), test %.1f, %.0f s", name, dev, best.number, len(history), test, seconds)
    return Outcome(run.folder, correct, best.layer_weights, best.gamma)


def _metric(task: Task, split: str, correct: np.ndarray) -> dict[str, Any]:
    low, high = bootstrap_interval(correct)
    score = {"name": task.metric, "split": split, "value": float(correct.mean()), "low": low, "high": high}
    return score | {"n": len(correct), "higher_is_better": True}


def _predictions(task: Task, split: str, examples: Sequence, probabilities: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "example_id": [example.id for example in examples],
            "split": split,
            "gold": [example.label for example in examples],
            "predicted": [task.labels[index] for index in probabilities.argmax(1)],
            "probabilities": probabilities.astype(float).tolist(),
            "text": [" ".join(example.tokens) for example in examples],
        }
    )


def _row(representation: Representation, head: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Sum up the seeds of one mix.

    `low` and `high` speak of other seeds where there are two or more, else of other test examples; the interval over
    examples, of correctness averaged over the seeds, stands beside it in both cases.
    """
    scores = {split: np.array([o.correct[split].mean() for o in outcomes]) for split in REPORTED}
    over_examples = bootstrap_interval(np.mean([o.correct["test"] for o in outcomes], 0))
    several = len(outcomes) > 1
    low, high = t_interval(scores["test"]) if several else over_examples
    weights = [o.layer_weights for o in outcomes if o.layer_weights is not None]
    gammas = [o.gamma for o in outcomes if o.gamma is not None]
    spread = several and representation.learned
    return {
        "mix": representation.mix,
        "x_k": representation.x_k,
        "representation": representation.shape_text,
        "head": head,
        "seeds": len(outcomes),
        "dev": float(scores["dev"].mean()),
        "test": float(scores["test"].mean()),
        "low": low,
        "high": high,
        "interval": f"t over {len(outcomes)} seeds" if several else "bootstrap over test examples",
        "examples_low": over_examples[0],
        "examples_high": over_examples[1],
        "n": len(outcomes[0].correct["test"]),
        "dev_by_seed": scores["dev"].tolist(),
        "test_by_seed": scores["test"].tolist(),
        "layer_weights": np.mean(weights, 0).tolist() if weights else None,
        "layer_weights_sd": np.std(weights, 0, ddof=1).tolist() if spread else None,
        "gamma": float(np.mean(gammas)) if gammas else None,
        "gamma_sd": float(np.std(gammas, ddof=1)) if spread else None,
        "runs": [o.folder.name for o in outcomes],
    }
