"""Comparisons in words and as JSON documents."""

from collections.abc import Sequence
from typing import Any

from toolkit.runs.compare import Comparison, outcome_counts
from toolkit.runs.describe import columns, metric_title, score_text
from toolkit.runs.reader import RunSummary


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """Return the JSON document that `toolkit compare` prints."""
    return {
        "a": comparison.a,
        "b": comparison.b,
        "runs_a": [run.id for run in comparison.runs_a],
        "runs_b": [run.id for run in comparison.runs_b],
        "difference": comparison.difference,
        "low": comparison.low,
        "high": comparison.high,
        "p_value": comparison.p_value,
        "n": comparison.n,
        "split": comparison.split,
        "sentence": comparison.sentence,
        "settings": [{"key": key, "a": a, "b": b} for key, (a, b) in comparison.settings.items()],
        "outcomes": outcome_counts(comparison.examples) if comparison.n else None,
    }


def comparison_text(comparison: Comparison) -> str:
    """Return the lines that `toolkit compare` prints."""
    blocks = [f"A  {comparison.a}\nB  {comparison.b}", comparison.sentence]
    rows = [("", "A", "B"), *score_rows(comparison)]
    if len(rows) > 1:
        blocks.append(columns(rows))
    if comparison.n:
        counts = outcome_counts(comparison.examples)
        blocks.append(" · ".join(f"{outcome} {count:,}" for outcome, count in counts.items()))
    differences = [(key, str(a), str(b)) for key, (a, b) in comparison.settings.items()]
    blocks.append(columns([("SETTING", "A", "B"), *differences]) if differences else "No setting differs.")
    return "\n\n".join(blocks)


def score_rows(comparison: Comparison) -> list[tuple[str, str, str]]:
    """Return metric, a's scores, b's scores; the seeds of a group stand beside each other."""
    titles = list(
        dict.fromkeys(metric_title(m) for run in (*comparison.runs_a, *comparison.runs_b) for m in run.metrics)
    )
    return [(title, _scores(comparison.runs_a, title), _scores(comparison.runs_b, title)) for title in titles]


def _scores(runs: Sequence[RunSummary], title: str) -> str:
    return " · ".join(score_text(m) for run in runs for m in run.metrics if metric_title(m) == title)
