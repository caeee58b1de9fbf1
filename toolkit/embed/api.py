"""A biLM in Python: sentences to vectors, words to vectors, sentences to likelihoods."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from toolkit.bilm.folder import Model, load_model
from toolkit.config import resolve
from toolkit.embed.dumpwriter import check_layers, choose_layers
from toolkit.embed.encoder import Compute, Encoder
from toolkit.embed.models import config_for, resolve_model
from toolkit.embed.score import Score, Scorer
from toolkit.embed.states import StateMode
from toolkit.errors import UsageError


def load_bilm(name_or_path: str | Path, state: StateMode | None = None, compute: Compute | None = None) -> "Embedder":
    """Load a biLM for use in Python.

    Args:
        name_or_path: what the commands take as MODEL: a pretrain run (its id, name or folder, looked for in the run
            store of the configuration), a model folder, or a zip in the NLPL layout.
            For a path no configuration file is read, only TOOLKIT_… variables.
        state: what sentences start from, "warm", "zero" or "stateful" (see `Encoder`); None takes the setting
            `embed.state`, which is "warm".
        compute: dtype of the matrix products of `embed`, "float32" or "bfloat16"; None takes the setting
            `embed.compute`, which is "float32".

    Raises:
        UsageError: nothing is called so, with near names; a setting is unknown; or the model lacks its vocabulary.
        FormatError: what lies there is no model, or a damaged one.
    """
    options = {"embed.state": state, "embed.compute": compute}
    settings = resolve(config_for(name_or_path), options).settings
    model = load_model(resolve_model(str(name_or_path), settings.paths.runs))
    return Embedder(model, settings.embed.state, settings.embed.batch_tokens, settings.embed.compute)


class Embedder:
    """A loaded biLM; made by `load_bilm`.

    Args:
        model: from `toolkit.bilm.folder.load_model`.
        state, batch_tokens, compute: see `Encoder`; scores are float32 always.

    Attributes:
        model: the weights with their vocabulary, card and fingerprint.
    """

    def __init__(
        self, model: Model, state: StateMode = "warm", batch_tokens: int = 8192, compute: Compute = "float32"
    ) -> None:
        self.model, self._options = model, (state, batch_tokens)
        self._encoder = Encoder(model, state, batch_tokens, compute)

    def embed(self, sentences: Iterable[Sequence[str]], layers: str | int = "all") -> list[np.ndarray]:
        """Return the vectors of sentences, in their order.

        The results of all sentences are held in memory; `toolkit embed` writes them to a file as they come.

        Args:
            sentences: each a sequence of tokens; an empty one gives T = 0.
            layers: "all", "top", "average" (unweighted), or a layer's number from 0, the token layer.

        Returns:
            an array a sentence: float32 [L+1, T, 2P], or [T, 2P] where `layers` is not "all". A forward model has P
            for 2P.

        Raises:
            UsageError: a sentence is a text instead of tokens, or there are no such layers.
        """
        check_layers(str(layers), self.model.spec.n_layers)
        return [choose_layers(found, str(layers)) for found in self._encoder.encode(_sentences(sentences))]

    def token_vectors(self, words: Sequence[str]) -> np.ndarray:
        """Return the context-independent vectors of words, float32 [n, P].

        Raises:
            UsageError: `words` is a single text.
        """
        return self._encoder.token_vectors(_tokens(words, "token_vectors() takes a list of words"))

    def score(self, sentences: Iterable[Sequence[str]]) -> list[Score]:
        """Return the negative log-likelihoods of sentences under the full softmax, in nats, in their order.

        Args:
            sentences: each a sequence of tokens; an empty one gets zeros.

        Raises:
            UsageError: a sentence is a text instead of tokens; or the model has no softmax, as published weights.
        """
        return list(self._scorer.scores(_sentences(sentences)))

    @cached_property
    def _scorer(self) -> Scorer:
        return Scorer(self.model, *self._options)


def _sentences(sentences: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    """Yield sentences, each checked."""
    if isinstance(sentences, str | bytes):
        raise UsageError(
            f"got the text {_short(sentences)} for a list of sentences: give [text.split()], or tokens of a tokeniser"
        )
    for number, sentence in enumerate(sentences):
        yield _tokens(sentence, f"sentence {number} should be a list of tokens")


def _tokens(tokens: Sequence[str], wanted: str) -> Sequence[str]:
    if isinstance(tokens, str | bytes):
        raise UsageError(f"{wanted}, it is the text {_short(tokens)}: split it into tokens first")
    strange = next((token for token in tokens if not isinstance(token, str)), None)
    if strange is not None:
        raise UsageError(f"{wanted}, it holds {_short(strange)} of the type {type(strange).__name__}")
    return tokens


def _short(value: object, most: int = 40) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"
