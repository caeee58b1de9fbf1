"""Comparisons in words and as JSON documents."""

from collections.abc import Sequence
from typing import Any

from toolkit.paired import p_text
from toolkit.runs.compare import Comparison, outcome_counts
from toolkit.runs.describe import columns, metric_title, score_text
from toolkit.runs.intervals import interval_of_scores
from toolkit.runs.reader import RunSummary
from toolkit.runs.schema import Metric


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
        "p_holm": paired.p_holm if paired else None,
        "comparisons": paired.comparisons if paired else 0,
        "n": paired.n if paired else 0,
        "test": paired.test if paired else None,
        "split": comparison.split,
        "metric": comparison.metric,
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


def comparisons_document(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Return the JSON document of several comparisons with one baseline."""
    return {
        "baseline": comparisons[0].a,
        "runs": [run.id for run in comparisons[0].runs_a],
        "comparisons": [comparison_document(comparison) for comparison in comparisons],
    }


def comparisons_text(comparisons: Sequence[Comparison]) -> str:
    """Return the lines for several comparisons with one baseline: a sentence each, and the table."""
    baseline = comparisons[0]
    rows = [("", "SCORE", "DIFFERENCE", "95% INTERVAL", "P", "P (HOLM)")]
    rows.append((baseline.a, _main_score(baseline.runs_a), "baseline", "", "", ""))
    for comparison in comparisons:
        figures = ("", "", "", "")
        if comparison.paired:
            pair = comparison.paired
            interval = f"{100 * pair.low:+.1f} to {100 * pair.high:+.1f}"
            corrected = "" if pair.p_holm is None else _p(pair.p_holm)
            figures = (f"{100 * pair.difference:+.1f}", interval, _p(pair.p_value), corrected)
        rows.append((comparison.b, _main_score(comparison.runs_b), *figures))
    return "\n\n".join(["\n".join(comparison.sentence for comparison in comparisons), columns(rows)])


def _main_score(runs: Sequence[RunSummary]) -> str:
    main = runs[0].main_score
    return f"{metric_title(main)} {_score(runs, metric_title(main))}" if main else ""


def _p(value: float) -> str:
    return p_text(value).removeprefix("p = ").removeprefix("p ")


def score_rows(runs_a: Sequence[RunSummary], runs_b: Sequence[RunSummary]) -> list[tuple[str, str, str]]:
    """Return one row a metric: its title, a's score, b's score.

    One run shows its score with its interval over examples, several seeds their mean with the interval over both.
    """
    titles = list(dict.fromkeys(metric_title(metric) for run in (*runs_a, *runs_b) for metric in run.metrics))
    return [
        (title + _direction(title, (*runs_a, *runs_b)), _score(runs_a, title), _score(runs_b, title))
        for title in titles
    ]


def _direction(title: str, runs: Sequence[RunSummary]) -> str:
    found = [metric for run in runs for metric in run.metrics if metric_title(metric) == title]
    return "" if found[0].get("higher_is_better", True) else ", lower is better"


def _score(runs: Sequence[RunSummary], title: str) -> str:
    found = [metric for run in runs for metric in run.metrics if metric_title(metric) == title]
    if len(found) < 2:
        return "".join(score_text(metric) for metric in found)
    low, high, _ = interval_of_scores(found)
    value = sum(metric["value"] for metric in found) / len(found)
    mean: Metric = {"name": found[0]["name"], "split": "", "value": value}
    if low is not None and high is not None:
        mean |= {"low": low, "high": high}
    return f"{score_text(mean)} ({len(found)} seeds)"
