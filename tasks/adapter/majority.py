"""What answering the most frequent label always would score: the floor of a user's own data."""

from collections import Counter
from typing import Any

from tasks.task import Splits
from toolkit.metrics import METRICS


def majority_of(splits: Splits, metric: str) -> dict[str, Any]:
    """Return the most frequent label (or tag) of train, its share of test, and what answering it always scores on test.

    Args:
        splits: labelled sentences, or sentences of tagged tokens, in train, dev and test.
        metric: a name of `toolkit.metrics.METRICS`.
    """
    counts = Counter(label for example in splits.train for label in example.tags or (example.label,))
    label = min(counts, key=lambda one: (-counts[one], one))
    gold = ["\t".join(example.tags) or example.label for example in splits.test]
    answers = ["\t".join([label] * len(example.tags)) or label for example in splits.test]
    accuracy, score = (float(METRICS[name].values(gold, [answers])[0]) for name in ("accuracy", metric))
    return {"label": label, "rate": accuracy, "score": score}
