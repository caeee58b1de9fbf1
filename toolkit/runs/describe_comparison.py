"""Comparisons in words and as JSON documents."""

from collections.abc import Sequence
from typing import Any

from toolkit.runs.compare import Comparison, outcome_counts
from toolkit.runs.describe import columns, metric_title, score_text
from toolkit.runs.reader import RunSummary
from toolkit.runs.schema import Metric
from toolkit.stats import t_interval


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """Return the JSON document that `toolkit compare` prints; without a paired test its numbers are null."""
    paired = comparison.paired
    return {
        "a": comparison.a,
        "b": comparison.b,
        "runs_a": [run.id for run in comparison.runs_a],
        "runs_b": [run.id for run in comparison.runs_b],
        "difference": paired.difference if paired else None,
        "low": paired.low if paired else None,
        "high": paired.high if paired else None,
        "p_value": paired.p_value if paired else None,
        "n": paired.n if paired else 0,
        "test": paired.test if paired else None,
        "split": comparison.split,
        "sentence": comparison.sentence,
        "settings": [{"key": key, "a": a, "b": b} for key, (a, b) in comparison.settings.items()],
        "outcomes": outcome_counts(comparison.examples) if paired else None,
    }


def comparison_text(comparison: Comparison) -> str:
    """Return the lines that `toolkit compare` prints."""
    blocks = [f"A  {comparison.a}\nB  {comparison.b}", comparison.sentence]
    scores = score_rows(comparison.runs_a, comparison.runs_b)
    if scores:
        blocks.append(columns([("", "A", "B"), *scores]))
    if comparison.paired:
        counts = outcome_counts(comparison.examples)
        blocks.append(" · ".join(f"{outcome} {count:,}" for outcome, count in counts.items()))
    differences = [(key, str(a), str(b)) for key, (a, b) in comparison.settings.items()]
    blocks.append(columns([("SETTING", "A", "B"), *differences]) if differences else "No setting differs.")
    return "\n\n".join(blocks)


def score_rows(runs_a: Sequence[RunSummary], runs_b: Sequence[RunSummary]) -> list[tuple[str, str, str]]:
    """Return one row a metric: its title, a's score, b's score.

    One run shows its score with the interval over examples, several seeds their mean with the interval over seeds.
    """
    titles = list(dict.fromkeys(metric_title(metric) for run in (*runs_a, *runs_b) for metric in run.metrics))
    return [(title, _score(runs_a, title), _score(runs_b, title)) for title in titles]


def _score(runs: Sequence[RunSummary], title: str) -> str:
    found = [metric for run in runs for metric in run.metrics if metric_title(metric) == title]
    if len(found) < 2:
        return "".join(score_text(metric) for metric in found)
    values = [metric["value"] for metric in found]
    low, high = t_interval(values)
    mean: Metric = {"name": found[0]["name"], "split": "", "value": sum(values) / len(values), "low": low, "high": high}
    return f"{score_text(mean)} ({len(found)} seeds)"
