"""What a file or folder is, for `toolkit inspect`: a model, dump, table of tokens, occurrences, vocabulary or run."""

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from toolkit.bilm.modelfiles import OPTIONS, holds_model
from toolkit.bilm.warming import WARM_MARK
from toolkit.embed.dumpfile import FORMAT as DUMP
from toolkit.embed.dumpfile import open_embeddings
from toolkit.errors import FormatError, UsageError
from toolkit.hdf5 import damage_reported, open_hdf5
from toolkit.runs import schema
from toolkit.runs.describe import columns, run_details
from toolkit.runs.find import find_run
from toolkit.runs.reader import load_run
from toolkit.senses.occurrencefile import FORMAT as OCCURRENCES
from toolkit.senses.occurrencefile import load
from toolkit.text.vocab import Vocabulary

SAMPLE_BYTES = 1 << 16
LONG = ("holds", "manifest", "settings", "results", "files", "scores", "card")  # for programs only
KINDS = "a model folder or zip, a dump, a table of tokens, an occurrences file, a vocabulary or a run"


def inspect(text: str, store: Path) -> dict[str, Any]:
    """Say what a path, or a run of the store, is.

    Args:
        text: a path; where nothing lies there, the name of a run.
        store: the run store.

    Returns:
        a JSON document with `kind` and `path`, and by kind:
        "model": fingerprint, layers (L), projection_dim, width (2P, or P of a forward model), dim, bidirectional,
        residual, input ("characters" or "words"), filters, highway_layers, max_characters (null for words), parameters,
        vocabulary (words of the softmax or null), softmax (true or false), warm_state (the mark of how the warm state
        is made today), refused_by (other programs that cannot read it: reader, reason), card.
        "dump": sentences, tokens, layers (L+1, null for one layer), width, dtype, attributes.
        "token table": words (V), width (P), dtype, attributes.
        "occurrences": occurrences, sentences, words (number of occurrences each), senses, layers (L+1), width, dtype,
        attributes.
        "vocabulary": words, fingerprint, first.
        "run": what `toolkit runs show --json` prints; for its model or occurrences `holds`, a document of that kind.

    Raises:
        UsageError: there is no such path or run.
        FormatError: it is none of these, or damaged; the message says in what way.
    """
    path = Path(text).expanduser()
    if not path.exists():
        try:
            return _run(find_run(store, text).folder)
        except UsageError as error:
            raise UsageError(f"no file or folder at {path}; {error}") from None
    if path.is_dir():
        return _folder(path)
    if zipfile.is_zipfile(path):
        return _model(path)
    if not path.is_file():
        raise FormatError(f"{path} is neither a file nor a folder")
    return _hdf5(path) if h5py.is_hdf5(path) else _vocabulary(path)


def _folder(path: Path) -> dict[str, Any]:
    if holds_model(path):
        return _model(path)
    if (path / schema.MANIFEST).exists():
        return _run(path.resolve())
    names = sorted(entry.name for entry in path.iterdir())
    holds = f"it holds {', '.join(names[:5])}{' …' if len(names) > 5 else ''}" if names else "it is empty"
    raise FormatError(f"{path} is neither a model folder ({OPTIONS}) nor a run ({schema.MANIFEST}): {holds}")


def _model(path: Path) -> dict[str, Any]:
    from toolkit.bilm.folder import load_model  # TensorFlow: only models need it
    from toolkit.bilm.readers import refusals

    model = load_model(path)
    spec = model.spec
    return {
        "kind": "model",
        "path": str(path),
        "fingerprint": model.fingerprint,
        "layers": spec.n_layers,
        "projection_dim": spec.projection_dim,
        "width": spec.width,
        "dim": spec.dim,
        "bidirectional": spec.bidirectional,
        "residual": spec.skip,
        "input": "words" if spec.reads_words else "characters",
        "filters": None if spec.reads_words else [list(pair) for pair in spec.filters],
        "highway_layers": None if spec.reads_words else spec.n_highway,
        "max_characters": None if spec.reads_words else spec.max_characters,
        "parameters": int(sum(np.prod(variable.shape) for variable in model.bilm.variables)),
        "vocabulary": len(model.vocabulary) if model.vocabulary else None,
        "softmax": model.has_softmax,
        "warm_state": WARM_MARK,
        "refused_by": [vars(refusal) for refusal in refusals(spec)],
        "card": dict(model.card),
    }


def _run(folder: Path) -> dict[str, Any]:
    run = load_run(folder)
    document = run_details(run)
    document = {"kind": "run", "path": str(folder), "run_kind": document.pop("kind"), **document}
    if (folder / schema.MODEL / OPTIONS).is_file():
        document["holds"] = _model(folder / schema.MODEL)
    elif (folder / schema.OCCURRENCES).is_file():
        document["holds"] = _occurrences(folder / schema.OCCURRENCES)
    return document


def _hdf5(path: Path) -> dict[str, Any]:
    with open_hdf5(path, "file") as file, damage_reported(str(path)):
        form, names = file.attrs.get("format"), set(file)
    if form == OCCURRENCES:
        return _occurrences(path)
    if form == DUMP or "0" in names:
        return _dump(path)
    if "RNN_0" in names:
        raise FormatError(f"{path} is the weights file of a model: inspect its folder, with {OPTIONS} beside it")
    if "embedding" in names:
        return _token_table(path)
    found = f"format {form!r}" if form is not None else f"datasets {', '.join(sorted(names)[:5]) or 'none'}"
    raise FormatError(f"{path} is an HDF5 file of another kind ({found}), not {KINDS}")


def _dump(path: Path) -> dict[str, Any]:
    with open_embeddings(path) as dump:
        tokens = dump.attributes.get("tokens")
        return {
            "kind": "dump",
            "path": str(path),
            "sentences": len(dump),
            "tokens": int(tokens) if tokens is not None else sum(map(dump.n_tokens, range(len(dump)))),
            "layers": dump.n_layers,
            "width": dump.width,
            "dtype": str(dump[0].dtype),
            "attributes": _json(dump.attributes),
        }


def _token_table(path: Path) -> dict[str, Any]:
    with open_hdf5(path, "table of tokens") as file, damage_reported(str(path)):
        table = file["embedding"]
        if not isinstance(table, h5py.Dataset) or table.ndim != 2 or table.dtype.kind != "f":
            raise FormatError(f"{path} is no table of tokens: embedding should be numbers of the shape [words, width]")
        return {
            "kind": "token table",
            "path": str(path),
            "words": table.shape[0],
            "width": table.shape[1],
            "dtype": str(table.dtype),
            "attributes": _json(dict(file.attrs)),
        }


def _occurrences(path: Path) -> dict[str, Any]:
    found = load(path)
    return {
        "kind": "occurrences",
        "path": str(path),
        "occurrences": len(found),
        "sentences": len(found.sentences),
        "words": found.counts,
        "senses": len({pair for pair in zip(found.words, found.senses, strict=True) if pair[1]}),
        "layers": found.n_layers,
        "width": found.vectors.shape[2],
        "dtype": str(found.vectors.dtype),
        "attributes": _json(found.attributes),
    }


def _vocabulary(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        start = file.read(SAMPLE_BYTES)
    if not start or b"\0" in start or b" " in start or b"\t" in start:  # one token a line: never read a corpus whole
        found = "it is empty" if not start else "a text or binary file of another kind"
        raise FormatError(f"{path} is not {KINDS}: {found}")
    try:
        vocabulary = Vocabulary.load(path)
    except FormatError as error:
        raise FormatError(f"{path} is not {KINDS}; as a vocabulary: {error}") from None
    return {
        "kind": "vocabulary",
        "path": str(path),
        "words": len(vocabulary),
        "fingerprint": hashlib.sha256("\n".join(vocabulary.words).encode()).hexdigest()[:16],
        "first": vocabulary.words[:10],
    }


def _json(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value if isinstance(value, str | int | float | bool) else str(value) for name, value in attributes.items()
    }


def describe(document: dict[str, Any]) -> str:
    """Return a document of `inspect` as aligned lines of name and value."""
    rows = []
    for name, value in document.items():
        if name in LONG or value in (None, "", []):
            continue
        if isinstance(value, dict):
            value = ", ".join(f"{key} {number}" for key, number in value.items())
        elif name == "refused_by":
            value = "; ".join(f"{refusal['reader']}: {refusal['reason']}" for refusal in value)
        elif isinstance(value, list):
            value = ", ".join("×".join(map(str, item)) if isinstance(item, list) else str(item) for item in value)
        elif isinstance(value, bool):
            value = "yes" if value else "no"
        elif isinstance(value, int):
            value = f"{value:,}"
        rows.append((name.replace("_", " "), str(value)))
    blocks = [columns(rows)]
    if "holds" in document:
        blocks.append(describe(document["holds"]))
    return "\n\n".join(blocks)
