"""Encoding occurrences of words: what `toolkit senses index` does, and free sentences as queries."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from toolkit.bilm.folder import Model
from toolkit.config import Settings
from toolkit.embed.encoder import Encoder
from toolkit.embed.states import state_mark
from toolkit.errors import UsageError
from toolkit.senses.keep import Vectors, keep
from toolkit.senses.occurrencefile import Occurrences, Query
from toolkit.senses.sources import Occurrence
from toolkit.text.tokenize import Tokenizer
from toolkit.text.vocab import UNK

logger = logging.getLogger(__name__)


def index(
    model: Model,
    occurrences: Iterable[Occurrence],
    words: Sequence[str],
    settings: Settings,
    source: str,
    name: str | None = None,
) -> dict[str, Any]:
    """Encode occurrences of words with a biLM and keep them in a run of kind "senses"; see `keep`.

    Raises:
        UsageError, DataError: as `keep`.
    """
    if model.spec.reads_words and model.vocabulary is not None:
        occurrences = _warned_of_unknown(model, occurrences)
    encoder = Encoder(model, settings.embed.state, settings.embed.batch_tokens)
    shape = (model.spec.n_layers + 1, model.spec.width)
    state = settings.embed.state
    made_with = {"model": str(model.path.resolve()), "state_mark": state_mark(state)}
    vectors = Vectors(shape, model.fingerprint, state, made_with, encoder.encode)
    return keep(vectors, occurrences, words, settings, source, name)


def _warned_of_unknown(model: Model, occurrences: Iterable[Occurrence]) -> Iterator[Occurrence]:
    unknown: set[str] = set()
    for occurrence in occurrences:
        word = occurrence.tokens[occurrence.position]
        if word not in model.vocabulary.ids:
            unknown.add(word)
        yield occurrence
    if unknown:
        logger.warning("the model reads %s as %s: its vocabulary lacks them", ", ".join(sorted(unknown)), UNK)


def encode_query(model: Model, occurrences: Occurrences, text: str, word: str, settings: Settings) -> Query:
    """Encode a free sentence, in the state of the occurrences, so that its neighbours can be looked up.

    Args:
        model: the one that made the occurrences.
        occurrences: what the query is for.
        text: a raw sentence; of several, all are one.
        word: the word in it, whatever its case; the first of several.
        settings: language and case of the tokeniser.

    Raises:
        UsageError: the model or its warm state is another one, or the word is not in the sentence.
    """
    if model.fingerprint != occurrences.model_fingerprint:
        raise UsageError(
            f"{model.path} is the model {model.fingerprint}, {occurrences.path} was made with "
            f"{occurrences.model_fingerprint}: index again with this model"
        )
    mark = state_mark(occurrences.attributes["state"])
    if occurrences.attributes.get("state_mark", mark) != mark:
        raise UsageError(f"{occurrences.path} was made from another warm state than today's: index again")
    tokenizer = Tokenizer(settings.text.language, settings.text.lowercase, "raw")
    tokens = [token for sentence in tokenizer.sentences(text) for token in sentence]
    lowered = [token.lower() for token in tokens]
    if word.lower() not in lowered:
        raise UsageError(f"{word!r} is not a token of the sentence, which has: {' '.join(tokens) or 'none'}")
    position = lowered.index(word.lower())
    encoder = Encoder(model, occurrences.attributes["state"], settings.embed.batch_tokens)
    (layers,) = encoder.encode([tokens])
    return Query(word.lower(), position, tokens, "", layers[:, position])
