"""One run: a classifier trained with one seed, or one a fold, scored, and all of it written to a run folder."""

import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tasks.adapter.classifier import Classifier
from tasks.adapter.dataset import Dataset
from tasks.adapter.features import LayerSource
from tasks.adapter.fit import Epoch, Fitted, Mixes, Watch, fit, predict, steps_of_epoch
from tasks.adapter.fraction import part_of
from tasks.adapter.gates import distribution, gates_of_tokens
from tasks.adapter.head import find_head
from tasks.adapter.representation import Representation
from tasks.adapter.wordvectors import WordTable
from tasks.task import Example, Round, Splits, Task
from toolkit.config import Evaluate, Settings
from toolkit.progress import Progress
from toolkit.runs.writer import RunWriter
from toolkit.stats import bootstrap_score

logger = logging.getLogger(__name__)

REPORTED = ("dev", "test")


@dataclass(frozen=True)
class Prepared:
    """A task ready for training with a model.

    Attributes:
        task, splits: what is asked.
        source: what gives the layers.
        data: all examples, the parts one behind the other.
        rows: the rows of each part, by its name.
        table: vectors that stand for x_k; None where it is the model's own.
    """

    task: Task
    splits: Splits
    source: LayerSource
    data: Dataset
    rows: dict[str, np.ndarray]
    table: WordTable | None = None

    @property
    def examples(self) -> list[Example]:
        """All examples in the order of the rows."""
        return [example for part in self.splits.parts().values() for example in part]


@dataclass(frozen=True)
class Outcome:
    """What one run gave.

    Attributes:
        folder: of the run.
        metric: of the task.
        gold, answers: texts of each reported split.
        mixes: the mixes that were scored with by place: weights of the layers and gamma, over folds their means.
    """

    folder: Path
    metric: str
    gold: dict[str, np.ndarray]
    answers: dict[str, np.ndarray]
    mixes: Mixes


@dataclass(frozen=True)
class Trained:
    """One round: a classifier, how it came about, and its probabilities of the two splits."""

    classifier: Classifier
    fitted: Fitted
    start: Mixes
    rows: dict[str, np.ndarray]
    probabilities: dict[str, list[np.ndarray]]


def own_settings(settings: Settings, representation: Representation, seed: int) -> Settings:
    """Return the settings of one run, which name one mix and one seed."""
    own = {"mix": representation.mix, "x_k": representation.x_k, "seed": seed, "seeds": 1}
    return settings.model_copy(update={"evaluate": settings.evaluate.model_copy(update=own)})


def run_seed(prepared: Prepared, representation: Representation, settings: Settings, seed: int, store: Path) -> Outcome:
    """Train with one seed, score on dev and test, and write all of it to a run folder.

    A task in folds is trained once a fold; its score is that of all examples, each predicted by the round that did not
    train on it.
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
    }
    with RunWriter.start(
        store,
        "evaluate",
        name,
        settings,
        seed,
        source.fingerprint,
        prepared.splits.fingerprint,
        extra,
    ) as run:
        began = time.monotonic()
        if representation.learned:
            logger.info("%s: %s mix: equal weights, untrained", name, representation.mix)
        trainings = _rounds(prepared, representation, own, seed, run, name)
        rows = {split: np.concatenate([t.rows[split] for t in trainings]) for split in REPORTED}
        found = {split: [p for t in trainings for p in t.probabilities[split]] for split in REPORTED}
        answers = {split: data.answers(found[split]) for split in REPORTED}
        frames = [_predictions(prepared, split, rows[split], found[split], answers[split]) for split in REPORTED]
        run.predictions(pd.concat(frames, ignore_index=True))
        mixes = _mean_mixes([t.fitted.best.mixes for t in trainings])
        if representation.learned:
            run.layers(_history(trainings, mixes, seed))
        metrics = [_metric(data, split, rows[split], answers[split]) for split in REPORTED[::-1]]
        result = _result(trainings, data, representation, own)
        metrics[1] |= result.pop("dev")
        result["seconds"] = round(time.monotonic() - began, 1)
        run.results({"metrics": metrics, "mixes": mixes, **result})
    logger.info("%s: %s", name, _sentence(trainings, metrics, result["seconds"]))
    for line in _mix_lines(trainings, mixes, result.get("gates", {})) if representation.learned else ():
        logger.info("%s: %s", name, line)
    return Outcome(run.folder, task.metric, {split: data.gold[rows[split]] for split in REPORTED}, answers, mixes)


def _name(prepared: Prepared, representation: Representation, own: Evaluate) -> str:
    vector = representation.mix if representation.x_k else f"{representation.mix}-without-x_k"
    place = "" if representation.place == "input" else f"at-{representation.place}"
    fraction = "" if own.train_fraction == 1 else f"{own.train_fraction:g}-of-train"
    parts = (prepared.task.name, prepared.source.label, vector, place, own.head, fraction, f"s{own.seed}")
    return "-".join(part for part in parts if part)


def _rounds(
    prepared: Prepared, representation: Representation, own: Evaluate, seed: int, run: RunWriter, name: str
) -> list[Trained]:
    rounds, metric = prepared.splits.rounds(), prepared.task.metric
    trains = [np.concatenate([prepared.rows[part] for part in one.train]) for one in rounds]
    trains = [part_of(prepared.examples, train, own.train_fraction, seed) for train in trains]
    total = sum(own.epochs * steps_of_epoch(len(train), own) for train in trains)
    done: list[Trained] = []
    with Progress(name, total, "steps") as bar:

        def on_step() -> None:
            bar.advance(1)
            run.heartbeat(bar.count / total)

        def on_epoch(epoch: Epoch) -> None:
            before = sum(trained.fitted.history[-1].step for trained in done)
            run.metric("loss", epoch.loss, before + epoch.step)
            run.metric(metric, epoch.dev_score, before + epoch.step, split="dev")
            what = f"epoch {epoch.number}" if epoch.strength is None else f"logistic regression, C {epoch.strength:g}"
            where = f"round {len(done) + 1}, " if len(rounds) > 1 else ""
            run.log(f"{where}{what}: loss {epoch.loss:.4f}, dev {metric} {epoch.dev_score:.4f}")
            run.heartbeat(bar.count / total)

        for one, train in zip(rounds, trains, strict=True):
            done.append(_train(prepared, representation, own, seed, one, train, Watch(on_step, on_epoch)))
    return done


def _train(
    prepared: Prepared,
    representation: Representation,
    own: Evaluate,
    seed: int,
    one: Round,
    train: np.ndarray,
    watch: Watch,
) -> Trained:
    task, data, table = prepared.task, prepared.data, prepared.table
    of_table = ()
    if table is not None:
        data = data.with_words(table.words_known(data.tokens_of(train)))
        of_table = table.start(seed), table.trained
    classifier = Classifier(representation, find_head(own.head), len(task.labels), own, seed, task.kind, *of_table)
    rows = {"dev": prepared.rows[one.dev], "test": prepared.rows[one.test]}
    equal = [1 / representation.n_layers] * representation.n_layers
    start = {place: (equal, 1.0) for place in representation.places}
    fitted = fit(classifier, data, train, rows["dev"], own, seed, watch)
    found = {split: predict(classifier, data, part, own.batch_size) for split, part in rows.items()}
    return Trained(classifier, fitted, start, rows, found)


def _predictions(
    prepared: Prepared, split: str, rows: np.ndarray, probabilities: list[np.ndarray], answers: np.ndarray
) -> pd.DataFrame:
    all_examples = prepared.examples
    examples = [all_examples[row] for row in rows]
    # Of tags it is the probability of each token's answer that is kept: all of them would fill a disk.
    kept = [p.max(-1) for p in probabilities] if prepared.task.kind == "tagging" else probabilities
    return pd.DataFrame(
        {
            "example_id": [example.id for example in examples],
            "split": split,
            "gold": [example.gold for example in examples],
            "predicted": list(answers),
            "probabilities": [p.astype(float).tolist() for p in kept],
            "text": [" ‖ ".join(" ".join(tokens) for tokens in example.sentences) for example in examples],
        }
    )


def _metric(data: Dataset, split: str, rows: np.ndarray, answers: np.ndarray) -> dict[str, Any]:
    counts = data.metric.counts(data.gold[rows], answers[None])
    low, high = bootstrap_score(counts, data.metric.score)
    value = float(data.metric.score(counts.sum(1))[0])
    score = {"name": data.metric.name, "split": split, "value": value, "low": low, "high": high}
    return score | {"n": len(rows), "higher_is_better": True}


def _result(trainings: list[Trained], data: Dataset, representation: Representation, own: Evaluate) -> dict[str, Any]:
    """Return what `results.json` holds beside the scores; "dev" is to be added to the metric of dev."""
    fits = [trained.fitted for trained in trainings]
    dev = {"last": float(np.mean([f.history[-1].dev_score for f in fits]))}
    result: dict[str, Any] = {"dev": dev}
    if len(fits) == 1:
        dev["best_step"] = fits[0].best.step
        result |= {"best_epoch": fits[0].best.number, "epochs": len(fits[0].history)}
    else:
        result |= {"rounds": len(fits), "epochs": sum(len(f.history) for f in fits)}
    if fits[0].best.strength is not None:
        result["strengths"] = [f.best.strength for f in fits]
    if representation.mix == "gated":
        found = [gates_of_tokens(t.classifier, data, t.rows["test"], own.batch_size) for t in trainings]
        result["gates"] = {place: distribution(np.concatenate([f[place] for f in found])) for place in found[0]}
    return result


def _mean_mixes(mixes: list[Mixes]) -> Mixes:
    return {
        place: (np.mean([m[place][0] for m in mixes], 0).tolist(), float(np.mean([m[place][1] for m in mixes])))
        for place in mixes[0]
    }


def _history(trainings: list[Trained], mixes: Mixes, seed: int) -> list[dict[str, Any]]:
    """Return the entries of `layers.json`, from equal weights on; of folds the first and the mean of the last ones."""
    if len(trainings) == 1:
        points = [(epoch.step, epoch.mixes) for epoch in trainings[0].fitted.path]
    else:
        points = [(max(trained.fitted.best.step for trained in trainings), mixes)]
    entries = []
    for step, found in [(0, trainings[0].start), *points]:
        (weights, gamma), *output = found.values()
        entry = {"step": step, "seed": seed, "weights": weights, "gamma": gamma}
        more = {"output_weights": output[0][0], "output_gamma": output[0][1]} if output else {}
        entries.append(entry | more)
    return entries


def _sentence(trainings: list[Trained], metrics: list[dict[str, Any]], seconds: float) -> str:
    test, dev = (100 * metric["value"] for metric in metrics)
    fits = [trained.fitted for trained in trainings]
    if fits[0].best.strength is not None:
        how = "C " + ", ".join(dict.fromkeys(f"{f.best.strength:g}" for f in fits))
    else:
        how = ", ".join(f"epoch {f.best.number} of {len(f.history)}" for f in fits[:1])
    how += f", {len(fits)} folds" if len(fits) > 1 else ""
    return f"dev {dev:.1f} ({how}), test {test:.1f}, {seconds:.0f} s"


def _mix_lines(trainings: list[Trained], mixes: Mixes, gates: dict[str, Any]) -> list[str]:
    lines = []
    for place, (weights, gamma) in mixes.items():
        before = " ".join(f"{weight:.2f}" for weight in trainings[0].start[place][0])
        after = " ".join(f"{weight:.2f}" for weight in weights)
        lines.append(f"mix at the {place}: {before} (equal weights, untrained) -> {after}, gamma 1.00 -> {gamma:.2f}")
    for place, found in gates.items():
        low, high = ([f"{value:.2f}" for value in found["quantiles"][percent]] for percent in ("5", "95"))
        spread = ", ".join(
            f"layer {layer} {' to '.join(pair)}" for layer, pair in enumerate(zip(low, high, strict=True))
        )
        lines.append(f"gates at the {place}, 90 % of {found['tokens']:,} test tokens: {spread}")
    return lines
