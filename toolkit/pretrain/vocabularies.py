"""What an adapted model starts with where its vocabulary is not the one that it was trained with."""

from dataclasses import replace

import numpy as np

from toolkit.bilm.backend import tf
from toolkit.bilm.folder import Softmax
from toolkit.bilm.model import BiLM
from toolkit.text.prepare import Prepared
from toolkit.text.vocab import BOS, EOS, UNK, Vocabulary


def target_counts(prepared: Prepared, vocabulary: Vocabulary) -> np.ndarray:
    """Return how often each word of a vocabulary is a target in the training text of a corpus.

    Returns:
        float64 [V]; words outside count for `<UNK>`, each sentence once for `<S>` and once for `</S>`.
    """
    ids = np.fromiter((vocabulary.id(word) for word in prepared.words), np.int64, len(prepared.words))
    counts = np.bincount(ids, weights=prepared.counts, minlength=len(vocabulary))
    counts[[vocabulary.ids[BOS], vocabulary.ids[EOS]]] = prepared.train.n_sentences
    return counts


def source_rows(old: Vocabulary, new: Vocabulary) -> np.ndarray:
    """Return for each new word the old row that it starts with, int64 [V]: its own, or that of `<UNK>`."""
    return np.fromiter((old.id(word) for word in new.words), np.int64, len(new))


def mapped(softmax: Softmax, old: Vocabulary, new: Vocabulary, counts: np.ndarray) -> Softmax:
    """Carry an output layer over to another vocabulary.

    A word of both keeps its row and bias. The others start with the row of `<UNK>`, and with it they share the
    probability that `<UNK>` had, by their counts in the corpus: to each one's bias the logarithm of its share is added.
    So the model says of any context what it said before, and of unknown words what their frequencies say; with the full
    bias of `<UNK>` for each, a thousand new words would take a thousand times its probability. No noise is needed to
    part the equal rows: each word has targets of its own. Words of the old vocabulary alone are left out, and the
    softmax normalises over the rest.

    Args:
        softmax: W float32 [V_old, P], b float32 [V_old].
        old, new: the vocabularies.
        counts: float64 [V_new] of the new vocabulary in the corpus, from `target_counts`; one is added to each.

    Returns:
        W float32 [V_new, P], b float32 [V_new].
    """
    rows = source_rows(old, new)
    weight, bias = softmax.weight[rows], softmax.bias[rows]
    sharing = np.flatnonzero(rows == old.ids[UNK])
    shares = counts[sharing] + 1.0
    bias[sharing] += np.log(shares / shares.sum()).astype(np.float32)
    return Softmax(weight, bias)


def with_vocabulary(bilm: BiLM, old: Vocabulary, new: Vocabulary) -> BiLM:
    """Return a biLM that reads words with its table carried over to another vocabulary, the rest unchanged.

    A word that the old vocabulary lacks starts with the row of `<UNK>`.
    """
    changed = BiLM(replace(bilm.spec, n_words=len(new)))
    for mine, given in zip(changed.variables, bilm.variables, strict=True):
        mine.assign(tf.gather(given, source_rows(old, new)) if mine is changed.embedding else given)
    return changed


def unigram(counts: np.ndarray, width: int) -> Softmax:
    """Return an output layer that predicts the unigrams of a corpus whatever the context: W = 0, b = log p(word).

    Args:
        counts: float64 [V], one is added to each.
        width: P.
    """
    return Softmax(np.zeros((len(counts), width), np.float32), log_unigrams(counts))


def log_unigrams(counts: np.ndarray) -> np.ndarray:
    """Return the logarithm of each word's share of a text, float32 [V]; `counts` float64 [V], one is added to each."""
    totals = counts + 1.0
    return np.log(totals / totals.sum()).astype(np.float32)
