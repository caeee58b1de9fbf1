"""Is B better than A: what differs in the settings, and a paired test on the same examples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from toolkit.errors import DataError, FormatError, UsageError
from toolkit.metrics import METRICS
from toolkit.paired import Paired, compare_paired, corrected
from toolkit.runs import schema
from toolkit.runs.find import find_runs
from toolkit.runs.reader import Run, RunSummary, load_run, read_predictions
from toolkit.runs.schema import relevant_settings

BOTH, ONLY_A, ONLY_B, NEITHER = "both right", "only A right", "only B right", "both wrong"
TOLERANCE = 1e-6  # of scores computed twice


@dataclass(frozen=True)
class Comparison:
    """Two runs, or two groups of seeds, beside each other.

    Attributes:
        a, b: what they are called.
        runs_a, runs_b: the runs behind them.
        settings: `{key: (value of a, value of b)}` of what differs and matters.
        split: of the paired test; "" without one.
        metric: that the paired test is about; "" without one.
        paired: difference of b minus a, interval and p-value (`toolkit.paired.compare_paired`); None for runs that keep
            no predictions, and for metrics that do not follow from them.
        sentence: the outcome in plain words.
        examples: one row an example: example_id, gold, predicted_a, predicted_b (the seeds' majority), correct_a,
            correct_b (mean over seeds), outcome, and text where the runs keep it.
    """

    a: str
    b: str
    runs_a: tuple[RunSummary, ...]
    runs_b: tuple[RunSummary, ...]
    settings: Mapping[str, tuple[Any, Any]]
    split: str
    metric: str
    paired: Paired | None
    sentence: str
    examples: pd.DataFrame


def compare(store: Path, a: str, b: str) -> Comparison:
    """Compare two runs or groups by what a user calls them.

    Raises:
        UsageError: a name fits nothing or runs of several experiments, or the two are of different kinds.
        DataError: the two did not predict the same examples, or not the same task.
        FormatError: predictions or settings are damaged.
    """
    return compare_runs(find_runs(store, a), find_runs(store, b))


def compare_runs(runs_a: Sequence[RunSummary], runs_b: Sequence[RunSummary]) -> Comparison:
    """Compare two runs or two groups of seeds; errors as in `compare`."""
    a, b = runs_a[0], runs_b[0]
    for run in (*runs_a, *runs_b):
        if run.status == schema.UNREADABLE:
            raise FormatError(f"run {run.id} cannot be compared: {run.problem}")
    if a.kind != b.kind:
        raise UsageError(f"{a.id} is a run of kind {a.kind!r}, {b.id} one of kind {b.kind!r}: nothing to compare")
    settings = settings_differences(load_run(a.folder), load_run(b.folder))
    label_a, label_b = label(runs_a), label(runs_b)
    split, metric, paired, examples = "", "", None, pd.DataFrame()
    sentence = f"No paired test: runs of kind {a.kind!r} keep no predictions; see the scores side by side."
    if reason := incomparable(a, b):
        sentence = f"No paired test: runs of kind {a.kind!r} keep no predictions. {reason}"
    if a.kind == "evaluate":
        if a.task != b.task:
            raise DataError(f"{a.id} is of task {a.task!r}, {b.id} of task {b.task!r}: only runs of one task compare")
        split, *sides, examples = paired_examples(runs_a, runs_b)
        metric = _metric((*runs_a, *runs_b), split)
        sentence = f"No paired test: {metric!r} cannot be had from predictions; see the scores side by side."
        if metric in METRICS:
            for runs, predicted in zip((runs_a, runs_b), sides, strict=True):
                check_scores(runs, metric, split, examples["gold"].to_numpy(), predicted)
            paired = compare_paired(METRICS[metric], examples["gold"], *sides)
            sentence = paired.sentence(*_names(runs_a, runs_b))
    return Comparison(
        label_a, label_b, tuple(runs_a), tuple(runs_b), settings, split, metric, paired, sentence, examples
    )


def compare_with(baseline: Sequence[RunSummary], others: Sequence[Sequence[RunSummary]]) -> list[Comparison]:
    """Compare several runs or groups with one; several p-values get Holm's correction; errors as in `compare`."""
    comparisons = [compare_runs(baseline, side) for side in others]
    pairs = iter(corrected([comparison.paired for comparison in comparisons if comparison.paired]))
    return [_with_pair(comparison, next(pairs)) if comparison.paired else comparison for comparison in comparisons]


def _with_pair(comparison: Comparison, paired: Paired) -> Comparison:
    names = _names(comparison.runs_a, comparison.runs_b)
    return replace(comparison, paired=paired, sentence=paired.sentence(*names))


def incomparable(a: RunSummary, b: RunSummary) -> str:
    """Say why the main scores of two runs must not be subtracted; "" where they may be."""
    scores = a.main_score, b.main_score
    if not all(scores):
        return "One of the two has no score."
    if a.kind != b.kind or a.task != b.task:
        return "They are of different tasks: their scores cannot be compared."
    first, second = ([score["name"], score["split"], score.get("kind")] for score in scores if score)
    if first != second:
        return "They are scored by different metrics: their scores cannot be compared."
    if a.data_fingerprint != b.data_fingerprint:
        what = "examples" if a.kind == "evaluate" else "text or vocabularies"
        return f"They are of different {what}: their scores cannot be compared."
    return ""


def settings_differences(a: Run, b: Run) -> dict[str, tuple[Any, Any]]:
    """Return `{key: (a's, b's)}` where a setting that matters to the kind differs; absent ones are None.

    Seeds, paths, times and hosts are left out. The model and the data stand in it by fingerprint.
    """
    sides = []
    for run in (a, b):
        flat = relevant_settings(run.summary.kind, run.settings)
        flat |= {"model": run.manifest.get("model_fingerprint"), "data": run.manifest.get("data_fingerprint")}
        sides.append(flat)
    keys = list(dict.fromkeys([*sides[0], *sides[1]]))
    return {key: (sides[0].get(key), sides[1].get(key)) for key in keys if sides[0].get(key) != sides[1].get(key)}


def paired_examples(
    runs_a: Sequence[RunSummary], runs_b: Sequence[RunSummary]
) -> tuple[str, np.ndarray, np.ndarray, pd.DataFrame]:
    """Align the predictions of both sides by example_id, on the test split where both have one, else on dev.

    Returns:
        the split; predictions of a and of b, texts [seeds, n]; the table that `Comparison.examples` describes.
        Examples stand in the order of the first run.

    Raises:
        DataError: the sides, or the seeds of one side, predicted different examples or hold different gold labels.
    """
    frames = [[read_predictions(run.folder) for run in runs] for runs in (runs_a, runs_b)]
    shared = set.intersection(*(set(frame["split"]) for side in frames for frame in side))
    split = next((name for name in ("test", "dev", "valid") if name in shared), None)
    if split is None:
        raise DataError(f"{label(runs_a)} and {label(runs_b)} have no split of predictions in common")
    sides = [[frame[frame["split"] == split].set_index("example_id") for frame in side] for side in frames]
    reference = sides[0][0]
    for run, frame in zip((*runs_a, *runs_b), (*sides[0], *sides[1]), strict=True):
        _check_alike(runs_a[0].id, reference, run.id, frame, split)
    examples = pd.DataFrame({"gold": reference["gold"]})
    predictions = []
    for letter, side in zip("ab", sides, strict=True):
        predictions.append(np.stack([frame.loc[reference.index, "predicted"].to_numpy(object) for frame in side]))
        examples[f"predicted_{letter}"] = [_majority(answers) for answers in predictions[-1].T.tolist()]
        examples[f"correct_{letter}"] = (predictions[-1] == reference["gold"].to_numpy(object)).mean(axis=0)
    examples["outcome"] = [_outcome(a, b) for a, b in zip(examples["correct_a"], examples["correct_b"], strict=True)]
    with_text = next((frame for side in sides for frame in side if "text" in frame.columns), None)
    if with_text is not None:
        examples["text"] = with_text["text"].reindex(reference.index)
    return split, predictions[0], predictions[1], examples.reset_index()


def check_scores(runs: Sequence[RunSummary], metric: str, split: str, gold: np.ndarray, predicted: np.ndarray) -> None:
    """Hold the scores that runs say they have against their predictions [runs, n].

    Raises:
        FormatError: one is not what its predictions give.
        DataError: the predictions do not fit the metric.
    """
    for run, value in zip(runs, METRICS[metric].values(gold, predicted), strict=True):
        said = next(score["value"] for score in run.metrics if (score["name"], score["split"]) == (metric, split))
        if not abs(said - value) <= TOLERANCE:  # so that NaN is refused too
            raise FormatError(
                f"{run.id} says {split} {metric} {100 * said:.4f}, its predictions give {100 * value:.4f}: "
                "evaluate it again"
            )


def _metric(runs: Sequence[RunSummary], split: str) -> str:
    """Return the name of the first score on a split, which all of the runs must have."""
    names = [next((score["name"] for score in run.metrics if score["split"] == split), None) for run in runs]
    for run, name in zip(runs, names, strict=True):
        if name is None:
            if run.problem:
                raise FormatError(f"{run.id} has no {split} score ({run.problem}): evaluate it again")
            raise DataError(f"{run.id} has no {split} score (it is {run.status}): nothing to compare")
        if name != names[0]:
            raise DataError(f"{runs[0].id} is scored by {names[0]}, {run.id} by {name}: nothing to compare")
    return str(names[0])


def outcome_counts(examples: pd.DataFrame) -> dict[str, int]:
    """Return how many examples fall into each of the four outcomes, in a fixed order."""
    counts = examples["outcome"].value_counts()
    return {outcome: int(counts.get(outcome, 0)) for outcome in (BOTH, ONLY_A, ONLY_B, NEITHER)}


def _majority(answers: list[str]) -> str:
    """Return the answer that most seeds give, of several such the first by name."""
    return min(set(answers), key=lambda answer: (-answers.count(answer), answer))


def _outcome(correct_a: float, correct_b: float) -> str:
    """Return the outcome of one example; a side is right when at least half of its seeds are."""
    a, b = correct_a >= 0.5, correct_b >= 0.5
    return BOTH if a and b else ONLY_A if a else ONLY_B if b else NEITHER


def _check_alike(id_a: str, a: pd.DataFrame, id_b: str, b: pd.DataFrame, split: str) -> None:
    shared = len(a.index.intersection(b.index))
    if shared != len(a) or shared != len(b):
        raise DataError(
            f"{id_a} predicted {len(a)} {split} examples, {id_b} {len(b)}, {shared} of them the same: a paired test "
            "needs the same ones; evaluate both on the same data"
        )
    changed = (b.loc[a.index, "gold"] != a["gold"]).sum()
    if changed:
        raise DataError(f"{id_a} and {id_b} hold different gold labels for {changed} of {len(a)} {split} examples")


def label(runs: Sequence[RunSummary]) -> str:
    """Return a run's name, or a group's with its number of seeds."""
    return runs[0].name if len(runs) == 1 else f"{runs[0].title} ({len(runs)} seeds)"


def _names(runs_a: Sequence[RunSummary], runs_b: Sequence[RunSummary]) -> tuple[str, str]:
    """Return what a sentence calls the two sides: names, or ids where the names do not tell them apart."""
    a, b = (runs[0].name if len(runs) == 1 else runs[0].title for runs in (runs_a, runs_b))
    return (a, b) if a != b else (runs_a[0].id, runs_b[0].id)
