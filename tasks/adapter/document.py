"""What `toolkit evaluate` answers: runs of the same configuration summed up, and compared."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tasks.adapter.representation import Representation
from tasks.adapter.run import REPORTED, Outcome
from toolkit.metrics import METRICS
from toolkit.runs.intervals import interval_of_scores
from toolkit.runs.reader import load_run, read_predictions, summarise
from toolkit.runs.schema import Metric

GOLD_ANSWER = ("gold", "predicted")


def outcome_of(folder: Path, metric: str) -> Outcome:
    """Return what a finished run gave.

    Raises:
        FormatError: the run does not keep its predictions, or they cannot be read.
    """
    frame = read_predictions(folder, ["example_id", "split", "gold", "predicted"]).sort_values("example_id")
    parts = {split: frame[frame["split"] == split] for split in REPORTED}
    gold, answers = ({split: part[name].to_numpy(object) for split, part in parts.items()} for name in GOLD_ANSWER)
    results = load_run(folder).results
    mixes = {place: tuple(mix) for place, mix in results.get("mixes", {}).items()}
    return Outcome(folder, metric, gold, answers, mixes, results.get("bilm"))


def row_of(representation: Representation, head: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Sum up the seeds of one mix.

    `low` and `high` are the interval of `toolkit.runs.intervals`, the same as in the table of scores.
    """
    metric = METRICS[outcomes[0].metric]
    counts = {
        split: metric.counts(outcomes[0].gold[split], np.stack([o.answers[split] for o in outcomes]))
        for split in REPORTED
    }
    scores = {split: metric.score(found.sum(1)) for split, found in counts.items()}
    low, high, interval = interval_of_scores([_test_score(outcome) for outcome in outcomes])
    spread = len(outcomes) > 1 and representation.learned
    mixes = {place: _mix_row([o.mixes[place] for o in outcomes], spread) for place in outcomes[0].mixes}
    of_input, *of_output = mixes.values() if mixes else [_mix_row([], False)]
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
        "interval": interval,
        "n": len(outcomes[0].gold["test"]),
        "dev_by_seed": scores["dev"].tolist(),
        "test_by_seed": scores["test"].tolist(),
        **of_input,
        **({"output_mix": of_output[0]} if of_output else {}),
        "bilm": _bilm_row([o.bilm for o in outcomes if o.bilm]),
        "runs": [o.folder.name for o in outcomes],
    }


def _test_score(outcome: Outcome) -> Metric:
    """Return the test score as the run's `results.json` holds it."""
    scores = summarise(outcome.folder).metrics
    return next(score for score in scores if (score["name"], score["split"]) == (outcome.metric, "test"))


def _bilm_row(told: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return what became of a biLM's weights over seeds, each distinct checksum once; runs of old do not tell it."""
    if not told:
        return None
    after = dict.fromkeys(checksum for one in told for checksum in one["checksums_after"])
    return {**told[0], "checksums_after": list(after)}


def _mix_row(mixes: Sequence[tuple[list[float], float]], spread: bool) -> dict[str, Any]:
    """Return the weights of the layers and gamma as means over the seeds, and their standard deviations."""
    weights, gammas = [mix[0] for mix in mixes], [mix[1] for mix in mixes]
    return {
        "layer_weights": np.mean(weights, 0).tolist() if mixes else None,
        "layer_weights_sd": np.std(weights, 0, ddof=1).tolist() if spread else None,
        "gamma": float(np.mean(gammas)) if mixes else None,
        "gamma_sd": float(np.std(gammas, ddof=1)) if spread else None,
    }
