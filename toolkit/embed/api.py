"""A biLM in Python: sentences to vectors, words to vectors, sentences to likelihoods."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from toolkit.bilm.folder import Model, load_model
from toolkit.config import resolve
from toolkit.embed.dumpwriter import check_layers, choose_layers
from toolkit.embed.encoder import Compute, Encoder
from toolkit.embed.models import config_for, resolve_model
from toolkit.embed.score import Score, Scorer
from toolkit.embed.states import StateMode
from toolkit.errors import UsageError
from toolkit.text.vocab import BOS, EOS

if TYPE_CHECKING:
    from toolkit.text.tokenize import Tokenizer

logger = logging.getLogger(__name__)


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

    def embed(self, sentences: str | Iterable[str | Sequence[str]], layers: str | int = "all") -> list[np.ndarray]:
        """Return the vectors of sentences, in their order.

        The results of all sentences are held in memory; `toolkit embed` writes them to a file as they come.

        Args:
            sentences: each a sequence of tokens, or a text, which `tokenize` splits; a single text is one sentence. An
                empty one gives T = 0. A token with white space inside or a boundary token is reported as a warning.
            layers: "all", "top", "average" (unweighted), or a layer's number from 0, the token layer.

        Returns:
            an array a sentence: float32 [L+1, T, 2P], or [T, 2P] where `layers` is not "all". A forward model has P
            for 2P.

        Raises:
            UsageError: a sentence holds something else than texts, or is one token with white space inside; or there
                are no such layers.
        """
        check_layers(str(layers), self.model.spec.n_layers)
        return [choose_layers(found, str(layers)) for found in self._encoder.encode(self._sentences(sentences))]

    def token_vectors(self, words: Sequence[str]) -> np.ndarray:
        """Return the context-independent vectors of words, float32 [n, P].

        Raises:
            UsageError: `words` is a single text.
        """
        return self._encoder.token_vectors(_tokens(words, "token_vectors() takes a list of words"))

    def score(self, sentences: str | Iterable[str | Sequence[str]]) -> list[Score]:
        """Return the negative log-likelihoods of sentences under the full softmax, in nats, in their order.

        Args:
            sentences: as of `embed`; an empty one gets zeros.

        Raises:
            UsageError: a sentence holds something else than texts, or is one token with white space inside; or the
                model has no softmax, as published weights.
        """
        return list(self._scorer.scores(self._sentences(sentences)))

    def tokenize(self, text: str) -> list[str]:
        """Return the tokens of a text, split as raw text is for the model's training.

        The language and lower-casing are those of the model's card; without a card, English and none.
        """
        return [
            token for line in text.splitlines() for sentence in self._tokenizer.sentences(line) for token in sentence
        ]

    def _sentences(self, sentences: str | Iterable[str | Sequence[str]]) -> Iterator[Sequence[str]]:
        """Yield the tokens of sentences, each checked."""
        if isinstance(sentences, bytes):
            raise UsageError(f"got the bytes {_short(sentences)} as sentences: decode them first")
        for number, sentence in enumerate([sentences] if isinstance(sentences, str) else sentences):
            if isinstance(sentence, str):
                yield self.tokenize(sentence)
                continue
            tokens = _tokens(sentence, f"sentence {number} should be a text or a list of tokens")
            _check_tokens(tokens, number)
            yield tokens

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        from toolkit.text.tokenize import Tokenizer  # its libraries are only needed for raw text

        text = self.model.card.get("text")
        text = text if isinstance(text, Mapping) else {}
        return Tokenizer(str(text.get("language", "en")), text.get("lowercase") is True, "raw")

    @cached_property
    def _scorer(self) -> Scorer:
        return Scorer(self.model, *self._options)


def _tokens(tokens: Sequence[str], wanted: str) -> Sequence[str]:
    if isinstance(tokens, str | bytes):
        raise UsageError(f"{wanted}, got {_short(tokens)}: split it into tokens first")
    strange = next((token for token in tokens if not isinstance(token, str)), None)
    if strange is not None:
        raise UsageError(f"{wanted}, it holds {_short(strange)} of the type {type(strange).__name__}")
    return tokens


def _check_tokens(sentence: Sequence[str], number: int) -> None:
    """Refuse or warn of what looks like a habit from other libraries."""
    blank = next((token for token in sentence if len(token.split()) > 1), None)
    if blank is not None and len(sentence) == 1:
        raise UsageError(
            f"sentence {number} is one token that holds white space, {_short(blank)}: give the text itself, "
            f"which is tokenized here, or a list of its tokens"
        )
    if blank is not None:
        logger.warning("sentence %d: the token %s holds white space and gets one vector", number, _short(blank))
    mark = next((token for token in (*sentence[:1], *sentence[-1:]) if token in (BOS, EOS)), None)
    if mark is not None:
        logger.warning(
            "sentence %d has %s as a token: boundary tokens are added to every sentence, so remove it", number, mark
        )


def _short(value: object, most: int = 40) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"
