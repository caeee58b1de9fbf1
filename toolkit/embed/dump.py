"""A text file's contextual embeddings, written to one HDF5 file: what `toolkit embed` does."""

import itertools
import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolkit.bilm.folder import Model
from toolkit.config import Embed
from toolkit.embed.dumpfile import open_embeddings
from toolkit.embed.dumpwriter import DumpWriter, check_attributes, check_layers, choose_layers
from toolkit.embed.encoder import Encoder
from toolkit.embed.states import state_mark
from toolkit.embed.survey import Survey, sections, survey
from toolkit.errors import DataError, UsageError
from toolkit.files import room_for
from toolkit.memory import peak_memory_mb
from toolkit.progress import Progress
from toolkit.text.corpus import lines

logger = logging.getLogger(__name__)

DEFAULTS = Embed()  # as config.toml has them
COMMIT_SECONDS = 20.0  # encoding that a kill may cost at most, beside the section at hand
COMMIT_SHARE = 0.05  # of the time, at most, goes into commits
WARMING_SECONDS = 5.0  # of encoding before its rate is believed


def dump(
    model: Model,
    file: Path,
    out: Path,
    settings: Embed = DEFAULTS,
    compress: bool = False,
    sentence_to_index: bool = False,
    resume: bool = False,
) -> dict[str, Any]:
    """Encode a tokenised text and write the dump (see `toolkit.embed.dumpfile`).

    Memory does not grow with the text, but for `sentence_to_index`, which takes some three times the text's size.

    Args:
        model: the biLM.
        file: UTF-8 text, a sentence a line, tokens between white space; plain, .gz, .bz2 or .xz. A blank line gives an
            empty sentence, so that dataset i is always line i.
        out: the HDF5 file to be. Until it is whole it is called `OUT.partial`.
        settings: states, layers ("all", "top", "average" or a number), dtype and products, see `Encoder`.
        compress: see `DumpWriter`.
        sentence_to_index: whether to write AllenNLP's table `sentence_to_index`, a JSON text from line to number. A
            line that comes twice stands in it twice; JSON readers take the last.
        resume: go on with an unfinished dump, to the same bits as an uninterrupted one; start one where there is none.

    Returns:
        the JSON document: output, sentences, tokens, unknown (how many of them a model that reads words took for
        `<UNK>`, null for one that reads characters), resumed_at (a sentence's number), seconds, tokens_per_second (of
        this process), peak_memory_mb, estimated_bytes, bytes, and the attributes: see `attributes_of`.

    Raises:
        UsageError: `file` is missing, `out` exists, there are no such layers, or what is to be resumed is of another
            text, model or setting.
        DataError: `file` is empty, not UTF-8, damaged, or changes while it is read.
        DiskFullError: there is no room; what was written is kept for `resume`.
    """
    check_layers(settings.layers, model.spec.n_layers)
    text = survey(file, model.vocabulary if model.spec.reads_words else None)
    attributes = attributes_of(model, text, settings, compress, sentence_to_index)
    size = text.size(model.spec, settings.layers, settings.dtype)
    started, done, resumed_at = time.monotonic(), 0, text.sentences
    if not is_complete(out, attributes, resume):
        announce(text, size, compress)
        encoder = Encoder(model, settings.state, settings.batch_tokens, settings.compute)
        with DumpWriter(out, attributes, compress, resume) as writer:
            resumed_at, done = writer.sentences, text.tokens - writer.tokens
            if not compress:
                with room_for(out, size * done // max(text.tokens, 1)):
                    pass
            if resumed_at:
                logger.info("going on behind %s of %s sentences", f"{resumed_at:,}", f"{text.sentences:,}")
                encoder.restore(writer.memory)
            _write(writer, encoder, file, text, settings)
            if (writer.sentences, writer.tokens) != (text.sentences, text.tokens):
                raise DataError(f"{file} changed while it was read: dump it anew")
            if sentence_to_index:
                writer.write_index(index_of(file))
    return {
        **document_of(out, text, model, attributes, time.monotonic() - started, done),
        "resumed_at": resumed_at,
    }


def attributes_of(
    model: Model, text: Survey, settings: Embed, compress: bool, sentence_to_index: bool
) -> dict[str, Any]:
    """Return what a dump says of itself: all that its content depends on."""
    return {
        "model_fingerprint": model.fingerprint,
        "text_fingerprint": text.fingerprint,
        **settings.model_dump(),
        "state_mark": state_mark(settings.state),
        "compression": "gzip" if compress else "none",
        "with_index": sentence_to_index,
    }


def document_of(
    out: Path, text: Survey, model: Model, attributes: dict[str, Any], seconds: float, done: int
) -> dict[str, Any]:
    """Return the JSON document of a finished dump; `done` is how many tokens took the seconds."""
    return {
        "output": str(out),
        "sentences": text.sentences,
        "tokens": text.tokens,
        "unknown": text.unknown,
        "seconds": round(seconds, 3),
        "tokens_per_second": round(done / seconds, 1),
        "peak_memory_mb": peak_memory_mb(),
        "estimated_bytes": text.size(model.spec, attributes["layers"], attributes["dtype"]),
        "bytes": out.stat().st_size,
        **attributes,
    }


def is_complete(out: Path, attributes: dict[str, Any], resume: bool) -> bool:
    """Return whether a dump to be resumed is finished already.

    Raises:
        UsageError: `out` exists though it is not to be resumed, or is of another text, model or setting.
    """
    if not out.exists():
        return False
    if not resume:
        raise UsageError(f"{out} exists already: remove it or give another -o")
    with open_embeddings(out) as found:
        check_attributes(out, found.attributes, attributes)
    logger.info("%s is complete", out)
    return True


def announce(text: Survey, size: int, compress: bool) -> None:
    """Tell the size of a dump before it starts."""
    most = "at most" if compress else "about"
    logger.info("%s sentences, %s tokens: %s %s", f"{text.sentences:,}", f"{text.tokens:,}", most, in_words(size))


def in_words(size: int) -> str:
    """Return a number of bytes as a text such as "1.5 GB"."""
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB"


def index_of(file: Path) -> str:
    """Return the text of AllenNLP's table `sentence_to_index` for the lines of a file."""
    pairs = (f"{json.dumps(line.strip())}: {json.dumps(str(number))}" for number, line in enumerate(lines(file)))
    return f"{{{', '.join(pairs)}}}"


def _write(writer: DumpWriter, encoder: Encoder, file: Path, text: Survey, settings: Embed) -> None:
    """Encode what the dump lacks; only whole windows of the encoder are committed, so that resuming has the same."""
    pace = _Pace(text.tokens - writer.tokens)
    with Progress("embedding", text.tokens - writer.tokens, "tokens") as progress:
        for section in sections(tokens_of(file, writer.sentences), encoder.window_tokens):
            before = writer.tokens
            for embeddings in encoder.encode(section):
                writer.write(choose_layers(embeddings, settings.layers).astype(settings.dtype, copy=False))
            progress.advance(writer.tokens - before)
            pace.tell(writer.tokens - before)
            if pace.commit_due():
                writer.commit(encoder.memory())
                pace.committed()


def tokens_of(file: Path, first: int) -> Iterator[list[str]]:
    """Yield the tokens of each line from the line `first` on, counted from 0."""
    return (line.split() for line in itertools.islice(lines(file), first, None))


class _Pace:
    """The time that a dump takes: told once it can be, and parted by commits."""

    def __init__(self, tokens: int) -> None:
        self._left = tokens
        self._since: float | None = None  # when the first section, which holds the start-up, was done
        self._done, self._told = 0, False
        self._next = 0.0  # behind the first section, so that there is something to go on with
        self._due = 0.0

    def tell(self, tokens: int) -> None:
        now = time.monotonic()
        self._left -= tokens
        if self._since is None:
            self._since = now
            return
        self._done += tokens
        if not self._told and now - self._since >= WARMING_SECONDS and self._left:
            rate = self._done / (now - self._since)
            logger.info("%s tokens/s: about %.1f minutes to go", f"{rate:,.0f}", self._left / max(rate, 1.0) / 60)
            self._told = True

    def commit_due(self) -> bool:
        self._due = time.monotonic()
        return self._left > 0 and self._due >= self._next

    def committed(self) -> None:
        now = time.monotonic()
        self._next = now + max(COMMIT_SECONDS, (now - self._due) / COMMIT_SHARE)
