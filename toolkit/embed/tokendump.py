"""The context-independent vectors of a list of words in one file: what `toolkit embed-tokens` does."""

import hashlib
import time
from pathlib import Path
from typing import Any

import toolkit
from toolkit.bilm.folder import Model
from toolkit.bilm.inference import Inference
from toolkit.embed.tokens import TokenTable
from toolkit.errors import UsageError
from toolkit.hdf5 import writing_hdf5
from toolkit.memory import peak_memory_mb
from toolkit.progress import Progress
from toolkit.text.vocab import UNK, numbered_words, read_bytes

FORMAT = "elmo-toolkit tokens 1"
SLICE = 8192  # words between two steps of the progress


def dump_tokens(model: Model, out: Path, vocabulary: Path | None = None) -> dict[str, Any]:
    """Write the token layer's vectors of words, in the layout of bilm-tf's `dump_token_embeddings`.

    The file holds `embedding`, float32 [V, P], a row a word in the order of the list; no row for the mask. `<S>` and
    `</S>` in the list are the marks of a sentence.

    Args:
        model: the biLM.
        out: the HDF5 file to be; written whole or not at all.
        vocabulary: the words, plain or .gz: see `numbered_words`. Row i is the (i + 1)th line, where no `!!!MAXTERMID`
            stands above it. A word that stands twice has two equal rows, as bilm-tf counts. None for the model's own.

    Returns:
        the JSON document: output, words (V), width (P), duplicates (lines whose word stood above), unknown (words that
        a model that reads words took for `<UNK>`, null for one that reads characters), seconds, words_per_second,
        peak_memory_mb, model_fingerprint, vocabulary_sha256 (of the words, each ended by a line feed).

    Raises:
        UsageError: `out` exists; or no list is given and the model has none.
        FormatError: the list is missing, damaged, not UTF-8, or has a blank line, on whose row readers differ.
        DiskFullError: the disk is full; nothing is left behind.
    """
    if out.exists():
        raise UsageError(f"{out} exists already: remove it or give another -o")
    words = _words(model, vocabulary)
    started = time.monotonic()
    table = TokenTable(Inference(model.bilm), model.vocabulary)
    width = model.spec.projection_dim
    attributes = {
        "model_fingerprint": model.fingerprint,
        "vocabulary_sha256": hashlib.sha256("".join(f"{word}\n" for word in words).encode()).hexdigest(),
    }
    with Progress("embedding words", len(words), "words") as progress, writing_hdf5(out) as file:
        file.attrs.update({"format": FORMAT, "toolkit_version": toolkit.__version__, **attributes})
        rows = file.create_dataset("embedding", (len(words), width), "<f4")
        for start in range(0, len(words), SLICE):
            part = words[start : start + SLICE]
            rows[start : start + len(part)] = table.vectors(part)
            progress.advance(len(part))
    seconds = time.monotonic() - started
    return {
        "output": str(out),
        "words": len(words),
        "width": width,
        "duplicates": len(words) - len(set(words)),
        "unknown": _unknown(model, words) if model.spec.reads_words else None,
        "seconds": round(seconds, 3),
        "words_per_second": round(len(words) / seconds, 1),
        "peak_memory_mb": peak_memory_mb(),
        **attributes,
    }


def _words(model: Model, vocabulary: Path | None) -> list[str]:
    if vocabulary is not None:
        return [word for _, word in numbered_words(read_bytes(vocabulary), str(vocabulary))]
    if model.vocabulary is None:
        raise UsageError(f"{model.path} has no vocabulary of its own: name the words with --vocabulary FILE")
    return model.vocabulary.words


def _unknown(model: Model, words: list[str]) -> int:
    return sum(word != UNK and model.vocabulary.id(word) == model.vocabulary.ids[UNK] for word in words)
