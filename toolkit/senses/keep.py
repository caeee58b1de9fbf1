"""Keeping occurrences of words with their vectors in a run, whatever gives the vectors (no TensorFlow needed)."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.config import Settings
from toolkit.errors import DataError, UsageError
from toolkit.files import fingerprint
from toolkit.memory import peak_memory_mb
from toolkit.progress import Progress
from toolkit.runs import schema
from toolkit.runs.writer import RunWriter
from toolkit.senses.occurrencefile import save
from toolkit.senses.sources import Occurrence, sample

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Vectors:
    """What gives the layers of sentences: an encoder with a model behind it, or a dump.

    Attributes:
        shape: L+1 and 2P.
        fingerprint: of the model, or what a dump says of it.
        state: "warm", "zero" or "stateful"; "" where a dump does not say it.
        made_with: what more the file should say of them: "model" or "embeddings", where that lies, and "state_mark".
        encode: from distinct sentences to float [L+1, T, 2P] each, in the same order.
    """

    shape: tuple[int, int]
    fingerprint: str
    state: str
    made_with: Mapping[str, str]
    encode: Callable[[Sequence[tuple[str, ...]]], Iterable[np.ndarray]]


def keep(
    vectors: Vectors,
    occurrences: Iterable[Occurrence],
    words: Sequence[str],
    settings: Settings,
    source: str,
    name: str | None = None,
) -> dict[str, Any]:
    """Keep occurrences of words, with the vectors of all layers, in a run of kind "senses".

    Args:
        vectors: what gives them.
        occurrences: from `toolkit.senses.sources`; at most `senses.max_occurrences` a word are kept, by `senses.seed`.
        words: what was looked for; one that does not occur is warned of. Empty when all of the source was taken.
        settings: the resolved settings; the store and the sample come from here.
        source: where the occurrences come from, in words.
        name: of the run; default "senses".

    Returns:
        the JSON document: run, output, words (number of occurrences each), occurrences, sentences, senses, seconds,
        peak_memory_mb, model_fingerprint, state, source, and what `vectors` says more.

    Raises:
        UsageError: the state is "stateful": a vector should depend on its sentence alone.
        DataError: no word occurs at all (no run is made), or what the source or the vectors raise.
    """
    if vectors.state == "stateful":
        raise UsageError("the state 'stateful' does not fit: an occurrence must depend on its sentence alone")
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
    sentences = list(dict.fromkeys(occurrence.tokens for occurrence in chosen))
    extra = {"words": counts, "source": source, "sentences": len(sentences), "layers": vectors.shape[0]}
    data = fingerprint([[o.word, o.position, o.sense, list(o.tokens)] for o in chosen])
    store, seed = settings.paths.runs, settings.senses.seed
    attributes = {"model_fingerprint": vectors.fingerprint, "state": vectors.state, "source": source}
    attributes |= vectors.made_with
    run = RunWriter.start(
        store, "senses", name or "senses", settings, seed, vectors.fingerprint, data, extra | dict(vectors.made_with)
    )
    with run, Progress("encoding", len(sentences), "sentences") as progress:
        rows = _rows(vectors, chosen, sentences, run, progress)
        output = run.folder / schema.OCCURRENCES
        save(output, chosen, rows, vectors.shape, attributes)
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


def _rows(
    vectors: Vectors,
    chosen: Sequence[Occurrence],
    sentences: Sequence[tuple[str, ...]],
    run: RunWriter,
    progress: Progress,
) -> Iterator[tuple[int, np.ndarray]]:
    places: dict[tuple[str, ...], list[int]] = {}
    for index, occurrence in enumerate(chosen):
        places.setdefault(occurrence.tokens, []).append(index)
    for done, (tokens, layers) in enumerate(zip(sentences, vectors.encode(sentences), strict=True), 1):
        for index in places[tokens]:
            yield index, layers[:, chosen[index].position]
        progress.advance(1)
        run.heartbeat(done / len(sentences))
