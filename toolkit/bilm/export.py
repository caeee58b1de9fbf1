"""`toolkit export`: a model written as a folder or zip that bilm-tf, AllenNLP and simple_elmo read."""

import io
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py

from toolkit.bilm.folder import Model, Softmax, full_card, write_softmax
from toolkit.bilm.modelfiles import CARD, NLPL_WEIGHTS, OPTIONS, SOFTMAX, VOCABULARY
from toolkit.bilm.weights import write_weights
from toolkit.errors import UsageError
from toolkit.files import atomic_folder, atomic_path, json_text

EPOCH = (1980, 1, 1, 0, 0, 0)  # the time of every file in a zip, so that one model makes one zip, byte for byte


def export(model: Model, out: Path, softmax: bool = False) -> dict[str, Any]:
    """Write a model's published files: options.json, model.hdf5, and vocab.txt where the model has a vocabulary.

    These are the names of the NLPL repository, which simple_elmo asks for; bilm-tf and AllenNLP take the paths of the
    first two. `card.json` lies beside them for this toolkit and for people.

    Args:
        model: any that `load_model` reads.
        out: a zip where it ends in .zip, else a folder; written whole or not at all.
        softmax: whether the output layer comes too, in a file of its own (softmax.h5) that other programs leave alone.

    Returns:
        the JSON document: output, layout ("folder" or "zip"), files (bytes by name), fingerprint, vocabulary (words or
        null), softmax, refused_by (other programs that cannot read this shape: reader, reason).

    Raises:
        UsageError: `out` exists, or a softmax is asked for that the model lacks.
        DiskFullError: the disk is full; nothing is left behind.
    """
    if out.exists():
        raise UsageError(f"{out} exists already: remove it or give another -o")
    output_layer = model.softmax() if softmax else None
    card = full_card(model.bilm, model.card)
    packed = out.suffix.lower() == ".zip"
    sizes = {}
    with (_zip if packed else _folder)(out) as put:
        for name, content in _files(model, output_layer, card):
            put(name, content)
            sizes[name] = len(content)
    return {
        "output": str(out),
        "layout": "zip" if packed else "folder",
        "files": sizes,
        "fingerprint": card["fingerprint"],
        "vocabulary": len(model.vocabulary) if model.vocabulary else None,
        "softmax": softmax,
        "refused_by": card["refused_by"],
    }


Put = Callable[[str, memoryview], object]


@contextmanager
def _folder(out: Path) -> Iterator[Put]:
    with atomic_folder(out) as temporary:
        yield lambda name, content: (temporary / name).write_bytes(content)


@contextmanager
def _zip(out: Path) -> Iterator[Put]:
    """Nothing is compressed: weights hardly get smaller, and readers start at once."""
    with atomic_path(out) as temporary, zipfile.ZipFile(temporary, "w") as archive:

        def put(name: str, content: memoryview) -> None:
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)

        yield put


def _files(model: Model, softmax: Softmax | None, card: dict[str, Any]) -> Iterator[tuple[str, memoryview]]:
    """Name and content of each file, one at a time."""
    yield OPTIONS, memoryview(json_text(model.spec.to_options()).encode())
    yield NLPL_WEIGHTS, _hdf5(lambda file: write_weights(model.bilm, file))
    if model.vocabulary:
        yield VOCABULARY, memoryview(model.vocabulary.to_text().encode())
    if softmax:
        yield SOFTMAX, _hdf5(lambda file: write_softmax(softmax, file))
    yield CARD, memoryview(json_text(card).encode())


def _hdf5(fill: Callable[[h5py.File], None]) -> memoryview:
    """In memory: HDF5 must not meet a full disk, nor can it write into a zip."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        fill(file)
    return buffer.getbuffer()
