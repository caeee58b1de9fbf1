"""Dumps on disk, read: the published HDF5 layout, one dataset a sentence named by its number.

Dataset "0", "1", … holds the embeddings of the sentence on that line, [L+1, T, 2P], or [T, 2P] where only one layer or
the layers' average was kept. The file's attributes, which other readers may ignore, say where it came from.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import h5py
import numpy as np

from toolkit.errors import FormatError, UsageError
from toolkit.hdf5 import damage_reported, open_hdf5

FORMAT = "elmo-toolkit dump 1"
SENTENCE_TO_INDEX = "sentence_to_index"  # AllenNLP's table beside the sentences


class Dump:
    """A dump that is read sentence by sentence; close it, or use it as a context manager.

    `len(dump)`, `dump[i]` and iteration give [L+1, T, 2P] or [T, 2P] in the stored dtype.

    Attributes:
        path: the file.
        attributes: what the file says of itself; empty for dumps of other makers.
        shape: of the first sentence.
    """

    def __init__(self, path: Path, file: h5py.File, sentences: int) -> None:
        self.path, self._file, self._sentences = path, file, sentences
        self.attributes = {name: getattr(value, "item", lambda v=value: v)() for name, value in file.attrs.items()}
        self.shape: tuple[int, ...] = file["0"].shape

    def __len__(self) -> int:
        return self._sentences

    def __getitem__(self, index: int) -> np.ndarray:
        """Return one sentence.

        Raises:
            IndexError: there is no such sentence.
            FormatError: its data is damaged or of another shape than the first sentence's.
        """
        return self._read(index, ())

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[index] for index in range(len(self)))

    @property
    def n_layers(self) -> int | None:
        """Return L+1, or None where the dump keeps one layer or an average."""
        return self.shape[0] if len(self.shape) == 3 else None

    @property
    def width(self) -> int:
        """Return 2P."""
        return self.shape[-1]

    def layer(self, index: int, layer: int) -> np.ndarray:
        """Return one layer of one sentence, [T, 2P], without reading the others.

        Raises:
            UsageError: the dump keeps one layer only, or has no such layer.
            IndexError, FormatError: as for `dump[i]`.
        """
        if self.n_layers is None:
            raise UsageError(f"{self.path} keeps one layer only: make a dump with --layers all")
        if not 0 <= layer < self.n_layers:
            raise UsageError(f"{self.path} has no layer {layer}: it has 0 to {self.n_layers - 1}")
        return self._read(index, (layer,))

    def _read(self, index: int, part: tuple) -> np.ndarray:
        if not -len(self) <= index < len(self):
            raise IndexError(f"sentence {index} of {len(self)}")
        name = str(index % len(self))
        with damage_reported(f"{self.path}, sentence {name},"):
            data = self._file[name]
            shape = data.shape
            if shape[:-2] != self.shape[:-2] or shape[-1:] != self.shape[-1:]:
                raise FormatError(f"{self.path}: sentence {name} has the shape {shape}, sentence 0 {self.shape}")
            return data[part] if part else data[()]

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> "Dump":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def open_dump(path: Path) -> Dump:
    """Open a dump of the toolkit, or one in the published layout by another maker.

    Raises:
        FormatError: there is no such file; it is no HDF5 file, cut short, unfinished, or holds something else.
    """
    path = Path(path)
    with ExitStack() as stack:
        file = stack.enter_context(open_hdf5(path, "dump"))
        with damage_reported(str(path)):
            dump = Dump(path, file, _check(path, file))
        stack.pop_all()
    return dump


def _check(path: Path, file: h5py.File) -> int:
    """Return the number of sentences."""
    form, complete, promised = (file.attrs.get(name) for name in ("format", "complete", "sentences"))
    names = set(file) - {SENTENCE_TO_INDEX}
    if form is not None and form != FORMAT:
        raise FormatError(f"{path} is of the format {form!r}, this toolkit reads {FORMAT!r}")
    if form is not None and not complete:
        raise FormatError(f"{path} is unfinished ({len(names)} sentences): make it again")
    if form is not None and promised != len(names):
        raise FormatError(f"{path} holds {len(names)} sentences and promises {promised}: make it again")
    strange = sorted(names - set(map(str, range(len(names)))))
    if strange or not names:
        found = f"it holds {strange[0]!r}" if strange else "it holds no sentence"
        raise FormatError(f"{path} is no dump, {found}: datasets should be named 0, 1, 2 …")
    first = file["0"]
    if not isinstance(first, h5py.Dataset) or first.ndim not in (2, 3) or first.dtype.kind != "f":
        raise FormatError(f"{path} is no dump: '0' should hold numbers of the shape [layers, tokens, width]")
    return len(names)
