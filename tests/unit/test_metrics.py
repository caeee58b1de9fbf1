"""Metrics from counts, against scikit-learn, published examples and the definition by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from toolkit.errors import DataError
from toolkit.metrics import METRICS, spans
from toolkit.stats import score_interval

LABELS = st.sampled_from(["bad", "good", "very good"])


def tagged(*sentences: str) -> list[str]:
    return ["\t".join(sentence.split()) for sentence in sentences]


@pytest.mark.filterwarnings("ignore:A single label")
@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(LABELS, LABELS, LABELS), min_size=1, max_size=30))
def test_label_metrics_equal_those_of_scikit_learn(rows: list[tuple[str, str, str]]) -> None:
    gold, *systems = (list(column) for column in zip(*rows, strict=True))
    theirs = {
        "accuracy": accuracy_score,
        "matthews": matthews_corrcoef,
        "macro_f1": lambda true, found: f1_score(true, found, average="macro", zero_division=0.0),
    }
    for name, function in theirs.items():
        expected = [function(gold, system) for system in systems]
        assert METRICS[name].values(gold, systems) == pytest.approx(expected, abs=1e-12), name


def test_accuracy_of_tags_counts_tokens() -> None:
    gold, found = tagged("NOUN VERB", "DET NOUN VERB DET", "X"), tagged("NOUN NOUN", "DET NOUN X DET", "X")
    assert METRICS["accuracy"].values(gold, [found])[0] == pytest.approx(5 / 7)


def test_labels_may_hold_blanks() -> None:
    assert METRICS["accuracy"].values(["very good", "bad"], [["very bad", "bad"]])[0] == 0.5


def test_span_f1_of_the_example_that_seqeval_shows() -> None:
    gold = tagged("O O O B-MISC I-MISC I-MISC O", "B-PER I-PER O")
    found = tagged("O O B-MISC I-MISC I-MISC I-MISC O", "B-PER I-PER O")
    assert METRICS["span_f1"].values(gold, [found])[0] == 0.5


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-PER I-PER O B-LOC", {("PER", 0, 1), ("LOC", 3, 3)}),
        ("B-PER B-PER", {("PER", 0, 0), ("PER", 1, 1)}),
        ("B-PER I-LOC I-LOC", {("PER", 0, 0), ("LOC", 1, 2)}),  # a type that changes begins a span
        ("O I-PER I-PER", {("PER", 1, 2)}),  # no B is needed
        ("S-PER B-LOC E-LOC", {("PER", 0, 0), ("LOC", 1, 2)}),
        ("B-LOC E-LOC I-LOC", {("LOC", 0, 1), ("LOC", 2, 2)}),
        ("B-A-B I-A-B", {("A-B", 0, 1)}),
        ("O O", set()),
    ],
)
def test_spans_as_conlleval_reads_them(tags: str, expected: set[tuple[str, int, int]]) -> None:
    assert spans(tuple(tags.split())) == expected


def test_nothing_found_and_nothing_there_score_zero() -> None:
    assert METRICS["span_f1"].values(["O", "O"], [["O", "O"]])[0] == 0
    assert METRICS["matthews"].values(["a", "a"], [["a", "a"]])[0] == 0  # as scikit-learn: no spread, no correlation


@pytest.mark.parametrize("tag", ["PER", "B-", "X-PER", "O-PER", ""])
def test_a_tag_that_is_none_is_refused(tag: str) -> None:
    with pytest.raises(DataError, match="no span tag"):
        METRICS["span_f1"].values(["O"], [[tag]])


def test_too_few_tags_are_refused_with_both_numbers() -> None:
    for name in ("accuracy", "span_f1"):
        with pytest.raises(DataError, match="example 2 has 3 gold and 2 predicted tags"):
            METRICS[name].values(tagged("O O", "O O O"), [tagged("O O", "O O")])


def test_the_interval_of_matthews_is_that_of_resampling_examples_with_scikit_learn() -> None:
    rng = np.random.default_rng(3)
    gold = np.where(rng.random(300) < 0.3, "no", "yes")
    found = np.where(rng.random(300) < 0.8, gold, "yes")
    metric = METRICS["matthews"]
    ours = score_interval(metric.counts(gold.astype(object), found[None].astype(object))[0], metric.score, -1.0)
    rows = [rng.integers(0, 300, 300) for _ in range(400)]
    theirs = np.quantile([matthews_corrcoef(gold[row], found[row]) for row in rows], [0.025, 0.975])
    assert ours == pytest.approx(theirs.tolist(), abs=0.03)
