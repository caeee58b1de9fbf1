"""What a run tells of its trainings: predictions, scores, mixes, and the sentences about them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tasks.adapter.dataset import Dataset
from tasks.adapter.epochs import Mixes
from tasks.adapter.gates import distribution, gates_of_tokens
from tasks.adapter.representation import Representation
from tasks.adapter.rounds import Trained
from tasks.task import Example, Kind
from toolkit.config import Evaluate
from toolkit.metrics import CountMetric
from toolkit.stats import score_interval


def predictions_of(
    examples: Sequence[Example], kind: Kind, split: str, probabilities: Sequence[np.ndarray], answers: np.ndarray
) -> pd.DataFrame:
    """Return the rows of `predictions.parquet` of one split."""
    # Of tags it is the probability of each token's answer that is kept: all of them would fill a disk.
    kept = [p.max(-1) for p in probabilities] if kind == "tagging" else probabilities
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


def metric_of(metric: CountMetric, gold: np.ndarray, split: str, answers: np.ndarray) -> dict[str, Any]:
    """Return the score of a split as it stands in `results.json`."""
    counts = metric.counts(gold, answers[None])
    low, high = score_interval(counts[0], metric.score, metric.bounds[0])
    value = float(metric.score(counts.sum(1))[0])
    score = {"name": metric.name, "split": split, "value": value, "low": low, "high": high}
    return score | {"n": len(gold), "higher_is_better": True}


def result_of(trainings: list[Trained], data: Dataset, representation: Representation, own: Evaluate) -> dict[str, Any]:
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
    if representation.form == "gated":
        found = [gates_of_tokens(t.classifier, data, t.rows["test"], own.batch_size) for t in trainings]
        result["gates"] = {place: distribution(np.concatenate([f[place] for f in found])) for place in found[0]}
    return result


def mean_mixes(mixes: list[Mixes]) -> Mixes:
    """Return the means over rounds, by place."""
    return {
        place: (np.mean([m[place][0] for m in mixes], 0).tolist(), float(np.mean([m[place][1] for m in mixes])))
        for place in mixes[0]
    }


def mix_history(trainings: list[Trained], mixes: Mixes, seed: int) -> list[dict[str, Any]]:
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


def sentence_of(trainings: list[Trained], metrics: list[dict[str, Any]], seconds: float) -> str:
    """Say how a run ended."""
    test, dev = (100 * metric["value"] for metric in metrics)
    fits = [trained.fitted for trained in trainings]
    if fits[0].best.strength is not None:
        how = "C " + ", ".join(dict.fromkeys(f"{f.best.strength:g}" for f in fits))
    else:
        how = ", ".join(f"epoch {f.best.number} of {len(f.history)}" for f in fits[:1])
    how += f", {len(fits)} folds" if len(fits) > 1 else ""
    return f"dev {dev:.1f} ({how}), test {test:.1f}, {seconds:.0f} s"


def mix_lines(trainings: list[Trained], mixes: Mixes, gates: dict[str, Any]) -> list[str]:
    """Say, a line a place, what the mixes weighed and weigh now, and how gates differ from token to token."""
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
