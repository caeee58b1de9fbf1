"""Encoding occurrences of words: what `toolkit senses index` does, and free sentences as queries."""

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from toolkit.bilm.folder import Model
from toolkit.config import Settings
from toolkit.embed.encoder import Encoder
from toolkit.embed.states import state_mark
from toolkit.errors import DataError, UsageError
from toolkit.files import fingerprint
from toolkit.memory import peak_memory_mb
from toolkit.progress import Progress
from toolkit.runs import schema
from toolkit.runs.writer import RunWriter
from toolkit.senses.occurrencefile import Occurrences, Query, save
from toolkit.senses.sources import Occurrence, sample
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
    """Encode occurrences of words and keep them in a run of kind "senses".

    Args:
        model: the biLM.
        occurrences: from `toolkit.senses.sources`; at most `senses.max_occurrences` a word are kept, by `senses.seed`.
        words: what was looked for; one that does not occur is warned of. Empty when all of the source was taken.
        settings: the resolved settings; the store, the state and the sample come from here.
        source: where the occurrences come from, in words.
        name: of the run; default "senses".

    Returns:
        the JSON document: run, output, words (number of occurrences each), occurrences, sentences, senses, seconds,
        peak_memory_mb, model_fingerprint, state, state_mark, source.

    Raises:
        UsageError: the state is "stateful": a vector should depend on its sentence alone.
        DataError: no word occurs at all (no run is made), or what the source raises.
    """
    state = settings.embed.state
    if state == "stateful":
        raise UsageError("embed.state = stateful does not fit: an occurrence must depend on its sentence alone")
    started = time.monotonic()
    chosen = sample(occurrences, settings.senses.max_occurrences, settings.senses.seed)
    counts: dict[str, int] = {}
    for occurrence in chosen:
        counts[occurrence.word] = counts.get(occurrence.word, 0) + 1
    missing = [word for word in words if word.lower() not in counts]
    if not chosen:
        raise DataError(f"nothing to index: none of {', '.join(words) or 'the words'} occurs in {source}")
    if missing:
        logger.warning("no occurrence of %s in %s", ", ".join(missing), source)
    if model.spec.reads_words and model.vocabulary is not None:
        unknown = sorted({o.tokens[o.position] for o in chosen} - model.vocabulary.ids.keys())
        if unknown:
            logger.warning("the model reads %s as %s: its vocabulary lacks them", ", ".join(unknown), UNK)
    sentences = list(dict.fromkeys(occurrence.tokens for occurrence in chosen))
    encoder = Encoder(model, state, settings.embed.batch_tokens)
    extra = {"words": counts, "source": source, "sentences": len(sentences)}
    data = fingerprint([[o.word, o.position, o.sense, list(o.tokens)] for o in chosen])
    run = RunWriter.start(
        settings.paths.runs, "senses", name or "senses", settings, settings.senses.seed, model.fingerprint, data, extra
    )
    made_with = {"model_fingerprint": model.fingerprint, "state": state, "state_mark": state_mark(state)}
    attributes = made_with | {"source": source}
    place = {"model": str(model.path.resolve())}
    with run, Progress("encoding", len(sentences), "sentences") as progress:
        rows = _rows(encoder, chosen, sentences, run, progress)
        output = run.folder / schema.OCCURRENCES
        save(output, chosen, rows, (model.spec.n_layers + 1, model.spec.width), attributes | place)
    return {
        "run": run.id,
        "output": str(output),
        "words": counts,
        "occurrences": len(chosen),
        "sentences": len(sentences),
        "senses": len({(o.word, o.sense) for o in chosen if o.sense}),
        "seconds": round(time.monotonic() - started, 3),
        "peak_memory_mb": peak_memory_mb(),
        **attributes,
    }


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


def _rows(
    encoder: Encoder, chosen: Sequence[Occurrence], sentences: list[tuple[str, ...]], run: RunWriter, progress: Progress
) -> Iterator[tuple[int, np.ndarray]]:
    places: dict[tuple[str, ...], list[int]] = {}
    for index_, occurrence in enumerate(chosen):
        places.setdefault(occurrence.tokens, []).append(index_)
    for done, (tokens, layers) in enumerate(zip(sentences, encoder.encode(sentences), strict=True), 1):
        for index_ in places[tokens]:
            yield index_, layers[:, chosen[index_].position]
        progress.advance(1)
        run.heartbeat(done / len(sentences))
