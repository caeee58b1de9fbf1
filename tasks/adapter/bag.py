"""The bag of words: TF-IDF of word 1- and 2-grams with logistic regression, and of tags the most frequent of a word."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from tasks.task import Example, Task, share
from toolkit.config import Evaluate
from toolkit.metrics import METRICS

VERSION = "1"  # to be raised when the same examples would give other predictions
GRID = tuple(2.0**power for power in range(-1, 7))  # C
TOLERANCE = 1e-2
PATIENCE = 3  # values of C without a better dev score before the search stops
NEVER = 10.0  # the distance of a label that train lacks
FOLDS = 5
# Chinese, Japanese, Thai, Lao, Burmese and Khmer are written without blanks.
WITHOUT_BLANKS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
SAMPLE = 1000  # examples that show whether words are separated by blanks


class Bag:
    """A logistic regression on the bag of words of a sentence, or of both sentences of a pair and their difference.

    Where most letters are of a script without blanks, characters 1 to 3 take the place of words 1 and 2.

    Args:
        labels: of the task.
        train: examples that are learned from.
        settings: class weights.
        strength: C; `select` changes it.
    """

    def __init__(self, labels: Sequence[str], train: Sequence[Example], settings: Evaluate, strength: float = 1.0):
        self.labels, self.strength = tuple(labels), strength
        characters = written_without_blanks(train)
        self._vectorizer = TfidfVectorizer(analyzer=_characters if characters else _words, sublinear_tf=True)
        self._vectorizer.fit([tokens for example in train for tokens in example.sentences])
        self._train = self._features(train)
        self._gold = np.array([self.labels.index(example.label) for example in train])
        self._balanced = "balanced" if settings.class_weights == "balanced" else None
        self._fit()

    def select(self, task: Task, dev: Sequence[Example]) -> "Bag":
        """Take the C that is best on dev, the smallest of equals."""
        metric, gold = METRICS[task.metric], np.array([example.gold for example in dev], object)
        features, best = self._features(dev), (-np.inf, 0.0)
        for strength in GRID:
            self.strength = strength
            self._fit()
            answers = np.array(self.labels, object)[_probabilities(self._decisions(features)).argmax(-1)]
            score = float(metric.values(gold, answers[None])[0])
            if score > best[0]:
                best, kept = (score, strength), self._coefficients
            elif GRID.index(strength) - GRID.index(best[1]) >= PATIENCE:
                break
        self.strength, self._coefficients = best[1], kept
        return self

    def decisions(self, examples: Sequence[Example]) -> np.ndarray:
        """Return decision values, float32 [n, K]: of two labels one, above 0 for the second; else one a label."""
        return self._decisions(self._features(examples))

    def probabilities(self, examples: Sequence[Example]) -> np.ndarray:
        """Return the probabilities of the labels, float32 [n, labels]."""
        return _probabilities(self.decisions(examples))

    def _features(self, examples: Sequence[Example]) -> csr_matrix:
        first = self._vectorizer.transform([example.tokens for example in examples])
        if not examples[0].second:
            return first
        second = self._vectorizer.transform([example.second for example in examples])
        return hstack([first + second, abs(first - second)]).tocsr()

    def _fit(self) -> None:
        """Fit one regression a label against the others, which liblinear does in the dual many times faster."""
        numbers = range(1, 2) if len(self.labels) == 2 else range(len(self.labels))
        weights, biases = [], []
        for number in numbers:
            is_label = self._gold == number
            if is_label.all() or not is_label.any():
                weights.append(np.zeros(self._train.shape[1]))
                biases.append(NEVER if is_label.all() else -NEVER)
                continue
            model = LogisticRegression(
                solver="liblinear",
                dual=True,
                tol=TOLERANCE,
                C=self.strength,
                max_iter=1000,
                random_state=1,
                class_weight=self._balanced,
            )
            model.fit(self._train, is_label)
            weights.append(model.coef_[0])
            biases.append(model.intercept_[0])
        self._coefficients = np.array(weights).T, np.array(biases)

    def _decisions(self, features: csr_matrix) -> np.ndarray:
        weights, biases = self._coefficients
        return np.asarray(features @ weights + biases, np.float32)


class TagBag:
    """The most frequent tag of each word in train; unknown words get the most frequent tag of words seen once.

    Args:
        labels: of the task.
        train: sentences with tags.
    """

    def __init__(self, labels: Sequence[str], train: Sequence[Example]) -> None:
        number = {label: place for place, label in enumerate(labels)}
        counts: defaultdict[str, np.ndarray] = defaultdict(lambda: np.zeros(len(labels), np.float32))
        for example in train:
            for token, tag in zip(example.tokens, example.tags, strict=True):
                counts[token][number[tag]] += 1
        once = [count for count in counts.values() if count.sum() == 1]
        unknown = np.sum(once or list(counts.values()), 0)
        self._shares = {word: count / count.sum() for word, count in counts.items()}
        self._unknown = unknown / unknown.sum()

    def probabilities(self, examples: Sequence[Example]) -> list[np.ndarray]:
        """Return the share of each tag among the occurrences of each word, float32 [tokens, labels] a sentence."""
        return [np.stack([self._shares.get(t, self._unknown) for t in e.tokens]) for e in examples]


def majority(task: Task, train: Sequence[Example]) -> np.ndarray:
    """Return the share of each label, or tag, among the training examples, float32 [labels]."""
    counts = Counter(label for example in train for label in example.tags or (example.label,))
    shares = np.array([counts[label] for label in task.labels], np.float32)
    return shares / shares.sum()


def bag_values(
    task: Task,
    train: Sequence[Example],
    dev: Sequence[Example],
    others: Sequence[Sequence[Example]],
    settings: Evaluate,
) -> list[np.ndarray]:
    """Return decision values of the training examples and of others, float32 [n, K] each, to be learned from.

    Those of a training example come from a regression that has not seen it (one of five folds, equal texts in one
    fold), so that they are as far from the truth as those of new examples; C is the one that is best on dev.

    Args:
        task: gives the labels and the metric.
        train: examples that are learned from.
        dev: examples that C is chosen on.
        others: lists of examples that were not learned from.
        settings: class weights.
    """
    whole = Bag(task.labels, train, settings).select(task, dev)
    fold = np.array([int(share(f"fold {example.sentences}") * FOLDS) for example in train])
    values = np.zeros((len(train), whole.decisions(dev[:1]).shape[1]), np.float32)
    for number in np.unique(fold):
        inside = np.flatnonzero(fold == number)
        rest = [train[row] for row in np.flatnonzero(fold != number)]
        held_out = [train[row] for row in inside]
        if rest:  # a training of a handful of texts may all be in one fold
            values[inside] = Bag(task.labels, rest, settings, whole.strength).decisions(held_out)
    return [values, *(whole.decisions(part) for part in others)]


def written_without_blanks(examples: Sequence[Example]) -> bool:
    """Return whether most letters of some examples are of scripts that put no blanks between words."""
    text = "".join(token for example in examples[:SAMPLE] for tokens in example.sentences for token in tokens)
    return 2 * len(WITHOUT_BLANKS.findall(text)) > sum(map(str.isalpha, text))


def _words(tokens: Sequence[str]) -> list[str]:
    return [*tokens, *(f"{first} {second}" for first, second in pairwise(tokens))]


def _characters(tokens: Sequence[str]) -> list[str]:
    text = "".join(tokens)
    return [text[start : start + n] for n in (1, 2, 3) for start in range(len(text) - n + 1)]


def _probabilities(decisions: np.ndarray) -> np.ndarray:
    shares = 1 / (1 + np.exp(-decisions))
    return np.concatenate([1 - shares, shares], -1) if shares.shape[1] == 1 else shares / shares.sum(-1, keepdims=True)
