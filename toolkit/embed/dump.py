"""A text file's contextual embeddings, written to one HDF5 file: what `toolkit embed` does."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolkit.bilm.folder import Model
from toolkit.embed.dumpwriter import DumpWriter, check_layers, choose_layers
from toolkit.embed.encoder import Encoder
from toolkit.embed.reading import check_text, tokenised_lines
from toolkit.embed.states import StateMode, state_mark
from toolkit.errors import DataError, UsageError
from toolkit.memory import peak_memory_mb
from toolkit.progress import Progress
from toolkit.text.vocab import UNK


def dump(
    model: Model,
    file: Path,
    out: Path,
    state: StateMode = "warm",
    layers: str = "all",
    dtype: str = "float32",
    batch_tokens: int = 4096,
) -> dict[str, Any]:
    """Encode a tokenised text and write the dump (see `toolkit.embed.dumpfile`).

    Args:
        model: the biLM.
        file: UTF-8 text, a sentence a line, tokens between white space; plain, .gz, .bz2 or .xz. A blank line gives an
            empty sentence, so that dataset i is always line i.
        out: the HDF5 file to be; written whole or not at all.
        state: see `Encoder`.
        layers: "all", "top", "average" or a layer's number.
        dtype: "float32" or "float16".
        batch_tokens: see `Encoder`.

    Returns:
        the JSON document: output, sentences, tokens, unknown (how many of them a model that reads words took for
        `<UNK>`, null for one that reads characters), seconds, tokens_per_second, peak_memory_mb, model_fingerprint,
        state, state_mark (see `state_mark`), layers, dtype.

    Raises:
        UsageError: `file` is missing, `out` exists, or there are no such layers.
        DataError: `file` is empty, not UTF-8 or damaged; nothing is written.
    """
    check_layers(layers, model.spec.n_layers)
    check_text(file)
    if out.exists():
        raise UsageError(f"{out} exists already: remove it or give another -o")
    encoder = Encoder(model, state, batch_tokens)
    attributes = {
        "model_fingerprint": model.fingerprint,
        "state": state,
        "state_mark": state_mark(state),
        "layers": layers,
        "dtype": dtype,
    }
    started = time.monotonic()
    sentences = tokens = 0
    unknown = 0 if model.spec.reads_words else None

    def lines(progress: Progress) -> Iterator[list[str]]:
        nonlocal unknown
        for line in tokenised_lines(file, progress):
            if unknown is not None:
                unknown += sum(model.vocabulary.id(word) == model.vocabulary.ids[UNK] for word in line)
            yield line

    with Progress("embedding", file.stat().st_size, "B") as progress, DumpWriter(out, attributes) as writer:
        for embeddings in encoder.encode(lines(progress)):
            writer.write(choose_layers(embeddings, layers).astype(dtype, copy=False))
            sentences += 1
            tokens += embeddings.shape[1]
        if not sentences:
            raise DataError(f"{file} is empty: it should hold one tokenised sentence a line")
    seconds = time.monotonic() - started
    return {
        "output": str(out),
        "sentences": sentences,
        "tokens": tokens,
        "unknown": unknown,
        "seconds": round(seconds, 3),
        "tokens_per_second": round(tokens / seconds, 1),
        "peak_memory_mb": peak_memory_mb(),
        **attributes,
    }
