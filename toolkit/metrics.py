"""Metrics of predicted labels and tags, each as a function of sums of counts that every example adds to.

Accuracy is a mean over examples, Matthews' correlation and F1 are not. All of them are functions of sums over examples,
so that one interval and one paired test (`toolkit.stats`) serve them all: both leave out one example at a time.

An answer is a text: a label, or the tags of a sentence with a tab between them. A sentence of tags is one example.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from toolkit.errors import DataError

TAG_SEPARATOR = "\t"  # labels may hold blanks

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CountMetric:
    """A metric of predictions; of all of these a higher value is better.

    Attributes:
        name: as in `results.json`.
        counts: from gold [n] and predicted [s, n], arrays of texts, to float64 [s, n, k]: what each example adds.
            Arrays of several systems give comparable counts only when they go in together.
        score: from sums [..., k] to the metric [...].
        correlation: whether the value can be below 0, and so is no share.
    """

    name: str
    counts: Callable[[npt.NDArray, npt.NDArray], Floats]
    score: Callable[[Floats], Floats]
    correlation: bool = False

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest possible value."""
        return (-1.0 if self.correlation else 0.0), 1.0

    def values(self, gold: npt.ArrayLike, predicted: npt.ArrayLike) -> Floats:
        """Return the metric of each system, [s], from gold [n] and predicted [s, n]."""
        return self.score(self.counts(np.asarray(gold, object), np.asarray(predicted, object)).sum(1))


def _answers(gold: npt.NDArray, predicted: npt.NDArray) -> Floats:
    """Return how many answers are right and how many there are: one an example, or one a token: [s, n, 2]."""
    if not any(TAG_SEPARATOR in text for text in gold):
        right = (predicted == gold).astype(float)
        return np.stack([right, np.ones_like(right)], -1)
    pairs = _paired_tags(gold, predicted)
    found = [(sum(map(str.__eq__, of_gold, of_system)), len(of_gold)) for of_gold, of_system in pairs]
    return np.array(found, float).reshape(*predicted.shape, 2)


def _classes(gold: npt.NDArray, predicted: npt.NDArray) -> Floats:
    """Return, of each class, whether the example is a hit, is of the class, is put in it: [s, n, 3 K]."""
    codes = np.unique(np.concatenate([gold[None], predicted]).astype(str), return_inverse=True)[1]
    of_class = codes.reshape(len(predicted) + 1, len(gold))[..., None] == np.arange(codes.max() + 1)
    is_gold, is_predicted = np.broadcast_to(of_class[0], of_class[1:].shape), of_class[1:]
    return np.concatenate([is_gold & is_predicted, is_gold, is_predicted], -1).astype(float)


def _spans(gold: npt.NDArray, predicted: npt.NDArray) -> Floats:
    pairs = [(spans(of_gold), spans(of_system)) for of_gold, of_system in _paired_tags(gold, predicted)]
    found = [(len(of_gold & of_system), len(of_gold), len(of_system)) for of_gold, of_system in pairs]
    return np.array(found, float).reshape(*predicted.shape, 3)


def _paired_tags(gold: npt.NDArray, predicted: npt.NDArray) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    tags = [tuple(text.split(TAG_SEPARATOR)) for text in gold]
    pairs = [(tags[i], tuple(text.split(TAG_SEPARATOR))) for system in predicted for i, text in enumerate(system)]
    for number, (of_gold, of_system) in enumerate(pairs):
        if len(of_gold) != len(of_system):
            place = number % len(gold) + 1
            raise DataError(f"example {place} has {len(of_gold)} gold and {len(of_system)} predicted tags")
    return pairs


@functools.lru_cache(maxsize=100_000)
def spans(tags: tuple[str, ...]) -> frozenset[tuple[str, int, int]]:
    """Return the spans of one sentence's tags as (type, first token, last token).

    Tags are `O`, or B, I, E or S with the type behind a hyphen. A span that does not begin with B counts all the same,
    as in the CoNLL evaluation (conlleval, Tjong Kim Sang and Buchholz 2000) and in seqeval's default mode.

    Raises:
        DataError: a tag is of no such form.
    """
    found, begin = set(), 0
    before, open_type = "O", ""
    for place, tag in enumerate((*tags, "O")):
        prefix, _, kind = tag.partition("-")
        if prefix not in ("O", "B", "I", "E", "S") or bool(kind) != (prefix != "O"):
            raise DataError(f"{tag!r} is no span tag: O, or B, I, E or S with a type as in B-PER")
        if before != "O" and (before in "ES" or prefix in "BSO" or kind != open_type):
            found.add((open_type, begin, place - 1))
        if prefix != "O" and (before in "OES" or prefix in "BS" or kind != open_type):
            begin = place
        before, open_type = prefix, kind
    return frozenset(found)


def _share(sums: Floats) -> Floats:
    return _divided(sums[..., 0], sums[..., 1])


def _f1(sums: Floats) -> Floats:
    return _divided(2 * sums[..., 0], sums[..., 1] + sums[..., 2])


def _macro_f1(sums: Floats) -> Floats:
    hits, gold, predicted = np.split(sums, 3, -1)
    return _divided(_divided(2 * hits, gold + predicted).sum(-1), (gold + predicted > 0).sum(-1))


def _matthews(sums: Floats) -> Floats:
    hits, gold, predicted = np.split(sums, 3, -1)
    n = gold.sum(-1)
    covariance = hits.sum(-1) * n - (gold * predicted).sum(-1)
    spread = np.sqrt((n**2 - (gold**2).sum(-1)) * (n**2 - (predicted**2).sum(-1)))
    return _divided(covariance, spread)


def _divided(numerator: Floats, denominator: Floats) -> Floats:
    """Return the ratio, 0 where there is nothing to divide by, as scikit-learn and seqeval do."""
    return np.divide(numerator, denominator, out=np.zeros(np.shape(numerator)), where=denominator != 0)


METRICS: Mapping[str, CountMetric] = {
    metric.name: metric
    for metric in (
        CountMetric("accuracy", _answers, _share),
        CountMetric("matthews", _classes, _matthews, correlation=True),  # of many classes: Gorodkin 2004
        CountMetric("macro_f1", _classes, _macro_f1),  # over the classes in gold or predicted
        CountMetric("span_f1", _spans, _f1),
    )
}
