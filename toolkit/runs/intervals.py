"""The interval of a score, of one run or several seeds, from their `results.json`: one rule for all tables."""

from collections.abc import Sequence

from toolkit.metrics import METRICS
from toolkit.runs.schema import Metric
from toolkit.stats import as_counts, interval_of_mean, mean_score, score_interval


def interval_of_scores(scores: Sequence[Metric]) -> tuple[float | None, float | None, str]:
    """Return low, high and the sources of `toolkit.stats.interval_of_mean` for one score per seed, at least one."""
    values = [score["value"] for score in scores]
    metric = METRICS.get(scores[0]["name"])
    bounds = {"bounds": metric.bounds} if metric else {}
    return interval_of_mean(values, [_over_examples(score) for score in scores], **bounds)


def _over_examples(score: Metric) -> tuple[float | None, float | None]:
    """Return a score's interval over examples; runs of old hold one of width nought where all answers were alike."""
    low, high, n = score.get("low"), score.get("high"), score.get("n")
    metric = METRICS.get(score["name"])
    if metric is None or low is None or low != high or not n:
        return low, high
    return score_interval(as_counts([score["value"]] * n), mean_score, metric.bounds[0])
