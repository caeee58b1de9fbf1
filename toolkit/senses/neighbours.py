"""Nearest neighbours of a word's occurrence, by layer, and how pure neighbourhoods are in their senses.

For a page or program:

    occurrences = load(run.folder / schema.OCCURRENCES)     # FormatError with a reason when damaged or foreign
    occurrences.counts                                      # {"bank": 54, …}: the words that can be chosen
    indices = occurrences.of("bank")                        # int [m]: its occurrences
    occurrences.tokens(i), occurrences.positions[i], occurrences.senses[i]   # one occurrence in its sentence
    for layer in range(occurrences.n_layers):               # 0 is the token layer
        for near in neighbours(occurrences, i, layer, k=10):
            near.index, near.cosine                         # look the sentence up by the index
    purity_at_k(occurrences, "bank", k=10)                  # None where fewer than two labelled occurrences exist

A free sentence becomes a query by `toolkit.senses.occurrences.encode_query`, which needs TensorFlow; `neighbours` takes
its result in place of an index. `Occurrences` is read only and may be shared between threads.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from toolkit.errors import UsageError
from toolkit.senses.occurrencefile import Occurrences, Query, load

__all__ = ["Neighbour", "Occurrences", "Purity", "Query", "load", "neighbours", "purity_at_k"]

DECIMALS = 6  # of a cosine: beyond them float32 tells equal vectors apart


class Neighbour(NamedTuple):
    """One neighbour: its index in the occurrences, and the cosine in the full space of the layer."""

    index: int
    cosine: float


@dataclass(frozen=True)
class Purity:
    """Share of the k nearest neighbours that have the query's sense, averaged over a word's labelled occurrences.

    Attributes:
        layers: the purity by layer, L+1 numbers from 0 to 1.
        majority: share of the most frequent sense: the score of always answering that one.
        chance: mean purity of neighbours drawn at random: what a layer without any sense in it gets.
        n: labelled occurrences.
        senses: labelled senses.
        k: neighbours looked at; an occurrence with fewer candidates counts with those.
    """

    layers: list[float]
    majority: float
    chance: float
    n: int
    senses: int
    k: int


def neighbours(
    occurrences: Occurrences, query: int | Query, layer: int, k: int = 10, same_word: bool = True
) -> list[Neighbour]:
    """Return the k nearest occurrences by cosine in the full 2P-dimensional space of a layer, nearest first.

    The query itself never is its own neighbour, nor is any occurrence in a sentence of the very same tokens. Equal
    cosines keep the order of the file: in layer 0 all occurrences of one written form are equal.

    Args:
        occurrences: from `load`.
        query: an index from 0 to n-1, or a free query with vectors of the same model.
        layer: 0 to L.
        k: 1 or more; fewer come back where there are fewer.
        same_word: only occurrences of the query's word; else of all words.

    Raises:
        UsageError: there is no such layer; k is below 1; or the query's word is not in the file and `same_word` asks
            for it.
        IndexError: there is no such occurrence.
    """
    _check(occurrences, layer, k)
    if not isinstance(query, Query):
        if not 0 <= query < len(occurrences):
            raise IndexError(f"occurrence {query} of {len(occurrences)}")
        query = occurrences.query(query)
    candidates = occurrences.of(query.word) if same_word else np.arange(len(occurrences))
    tokens = list(query.tokens)
    same = [number for number, sentence in enumerate(occurrences.sentences) if sentence == tokens]
    candidates = candidates[~np.isin(occurrences.sentence_of[candidates], same)]
    cosines = _unit(occurrences.vectors[candidates, layer]) @ _unit(query.vectors[layer])
    order = np.argsort(-cosines.round(DECIMALS), kind="stable")[:k]
    return [Neighbour(int(candidates[i]), float(cosines[i])) for i in order]


def purity_at_k(occurrences: Occurrences, word: str, k: int = 10) -> Purity | None:
    """Measure by layer how often a word's nearest neighbours share its gold sense.

    Only labelled occurrences of the word take part; those in one sentence are no neighbours of each other.

    Args:
        occurrences: from `load`.
        word: one of `occurrences.counts`.
        k: 1 or more.

    Returns:
        None where fewer than two occurrences in different sentences are labelled.

    Raises:
        UsageError: the file has no such word, or k is below 1.
    """
    _check(occurrences, 0, k)
    labelled = np.array([i for i in occurrences.of(word) if occurrences.senses[i]], dtype=int)
    senses, sentence = np.array([occurrences.senses[i] for i in labelled]), occurrences.sentence_of[labelled]
    other = sentence[:, None] != sentence
    counted = other.any(1) if len(labelled) else np.zeros(0, bool)
    if not counted.any():
        return None
    agree = senses[:, None] == senses
    layers = []
    for layer in range(occurrences.n_layers):
        vectors = _unit(occurrences.vectors[labelled, layer])
        layers.append(_purity(vectors[counted] @ vectors.T, agree[counted], other[counted], k))
    chance = float(((agree & other).sum(1)[counted] / other.sum(1)[counted]).mean())
    _, frequencies = np.unique(senses, return_counts=True)
    majority = float(frequencies.max() / len(labelled))
    return Purity(layers, majority, chance, len(labelled), len(frequencies), k)


def _purity(cosines: np.ndarray, agree: np.ndarray, other: np.ndarray, k: int) -> float:
    """Mean share of agreeing neighbours; those that tie for the last places share them, as in layer 0 all do."""
    cosines = np.where(other, cosines.round(DECIMALS), -np.inf)
    places = np.minimum(k, other.sum(1))
    last = np.take_along_axis(-np.sort(-cosines, axis=1), places[:, None] - 1, 1)
    nearer, tied = cosines > last, cosines == last
    share = (places - nearer.sum(1)) / tied.sum(1)
    return float((((agree & nearer).sum(1) + share * (agree & tied).sum(1)) / places).mean())


def _check(occurrences: Occurrences, layer: int, k: int) -> None:
    if not 0 <= layer < occurrences.n_layers:
        raise UsageError(f"no layer {layer} in {occurrences.path}: it has 0 to {occurrences.n_layers - 1}")
    if k < 1:
        raise UsageError(f"{k} neighbours asked for: it takes 1 or more")


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Scale to length 1, float32; a zero vector stays zero."""
    vectors = vectors.astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(lengths == 0, 1, lengths)
