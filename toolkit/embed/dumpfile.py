"""Dumps on disk, read: the published HDF5 layout, one dataset a sentence named by its number.

Dataset "0", "1", … holds the embeddings of the sentence on that line, [L+1, T, 2P], or [T, 2P] where only one layer or
the layers' average was kept. The file's attributes, which other readers may ignore, say where it came from. A dataset
may be a link into another file, and may be compressed.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path, PurePath
from types import TracebackType

import h5py
import numpy as np

from toolkit.errors import FormatError, UsageError
from toolkit.hdf5 import damage_reported, open_hdf5
from toolkit.localhdf5 import LocalFile

FORMAT = "elmo-toolkit dump 1"
SENTENCE_TO_INDEX = "sentence_to_index"  # AllenNLP's table beside the sentences


class Dump:
    """A dump that is read sentence by sentence; close it, or use it as a context manager.

    `len(dump)`, `dump[i]` and iteration give [L+1, T, 2P] or [T, 2P] in the stored dtype. Nothing is read before it is
    asked for, and nothing is kept, so memory does not grow with the file.

    Attributes:
        path: the file.
        attributes: what the file says of itself; empty for dumps of other makers.
        shape: of the first sentence.
    """

    def __init__(self, path: Path, file: LocalFile, sentences: int) -> None:
        self.path, self._file, self._sentences = path, file, sentences
        self._part: LocalFile | None = None
        self._part_path: Path | None = None
        self.attributes = {name: getattr(value, "item", lambda v=value: v)() for name, value in file.attrs.items()}
        first = self._dataset(0)
        if not isinstance(first, h5py.Dataset) or first.ndim not in (2, 3) or first.dtype.kind != "f":
            raise FormatError(f"{path} is no dump: '0' should hold numbers of the shape [layers, tokens, width]")
        if first.shape[0 if first.ndim == 3 else -1] == 0 or first.shape[-1] == 0:
            raise FormatError(f"{path} is no dump: '0' has the shape {first.shape}, without any layer or width")
        self.shape: tuple[int, ...] = first.shape

    def __len__(self) -> int:
        return self._sentences

    def __getitem__(self, index: int) -> np.ndarray:
        """Return one sentence.

        Raises:
            IndexError: there is no such sentence.
            FormatError: it is missing or damaged, or of another shape than the first sentence.
        """
        return self._read(index, ())

    def __iter__(self) -> Iterator[np.ndarray]:
        return self.iterate()

    def iterate(self, layer: int | None = None) -> Iterator[np.ndarray]:
        """Yield the sentences in order: whole, or [T, 2P] of one layer; errors as in `dump[i]` and `layer`."""
        return (self[index] if layer is None else self.layer(index, layer) for index in range(len(self)))

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

    def layers(self, index: int) -> np.ndarray:
        """Return one sentence as [L+1, T, 2P] in any case; [1, T, 2P] where the dump keeps one layer or an average."""
        sentence = self[index]
        return sentence if sentence.ndim == 3 else sentence[None]

    def n_tokens(self, index: int) -> int:
        """Return T of one sentence without reading its vectors; errors as for `dump[i]`."""
        with damage_reported(f"{self.path}, sentence {index},"):
            return self._checked(index).shape[-2]

    def require(self, model_fingerprint: str | None = None, text_fingerprint: str | None = None) -> None:
        """Check what the dump was made of; None asks for nothing.

        Args:
            model_fingerprint: of the model, 16 hexadecimal digits.
            text_fingerprint: of the text, see `toolkit.text.mark`.

        Raises:
            FormatError: the dump is of another model or text, or does not say which; with both values.
        """
        expected = {"model_fingerprint": model_fingerprint, "text_fingerprint": text_fingerprint}
        for name, value in expected.items():
            found = self.attributes.get(name)
            what = name.partition("_")[0]
            if value is not None and found is None:
                raise FormatError(f"{self.path} does not say of which {what} it is ({name}), expected {value}")
            if value is not None and found != value:
                raise FormatError(f"{self.path} is of the {what} {found}, expected {value}: dump it anew")

    def _read(self, index: int, part: tuple) -> np.ndarray:
        with damage_reported(f"{self.path}, sentence {index},"):
            data = self._checked(index)
            return data[part] if part else data[()]

    def _checked(self, index: int) -> h5py.Dataset:
        if not -len(self) <= index < len(self):
            raise IndexError(f"sentence {index} of {len(self)}")
        index %= len(self)
        data = self._dataset(index)
        shape = getattr(data, "shape", ())
        if len(shape) != len(self.shape) or shape[:-2] != self.shape[:-2] or shape[-1:] != self.shape[-1:]:
            raise FormatError(f"{self.path}: sentence {index} has the shape {shape}, sentence 0 {self.shape}")
        return data

    def _dataset(self, index: int) -> h5py.Dataset:
        name = str(index)
        link = self._file.link(name)
        if link is None:
            raise FormatError(f"{self.path} lacks sentence {name} of {len(self)}: make it again")
        if isinstance(link, h5py.ExternalLink):
            return self._in_part(name, link)
        return self._file[name]

    def _in_part(self, name: str, link: h5py.ExternalLink) -> h5py.Dataset:
        """A sentence of a dump in parts, which lie beside the dump; a part is held open until another one is read."""
        relative = PurePath(link.filename)
        if relative.is_absolute() or ".." in relative.parts:
            raise FormatError(
                f"{self.path}: sentence {name} is a link to {link.filename!r}: the parts of a dump lie beside it"
            )
        path = self.path.parent / relative
        if self._part is None or self._part_path != path:
            self._close_part()
            if not path.is_file():
                raise FormatError(
                    f"{self.path}: sentence {name} should lie in {link.filename}, where it is not: "
                    f"keep the parts of a dump where they were made, or make it again"
                )
            self._part, self._part_path = open_hdf5(path, "part of a dump"), path
        if link.path not in self._part:
            raise FormatError(f"{path} lacks {link.path}, which is sentence {name} of {self.path}: make it again")
        return self._part[link.path]

    def _close_part(self) -> None:
        if self._part is not None:
            self._part.close()
        self._part = None

    def close(self) -> None:
        """Close the file."""
        self._close_part()
        self._file.close()

    def __enter__(self) -> "Dump":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def open_embeddings(path: Path, model_fingerprint: str | None = None, text_fingerprint: str | None = None) -> Dump:
    """Open a dump of the toolkit, or one in the published layout by another maker.

    The names of the sentences are not listed: it takes the same time and memory however many there are. One that is
    missing is found here where the number of datasets tells, and else when it is read.

    Args:
        path: the file.
        model_fingerprint, text_fingerprint: what it should be of, see `Dump.require`.

    Raises:
        FormatError: there is no such file; it is no HDF5 file, cut short, unfinished, holds something else, or is of
            another model or text.
    """
    path = Path(path)
    with ExitStack() as stack:
        file = stack.enter_context(open_hdf5(path, "dump"))
        with damage_reported(str(path)):
            dump = Dump(path, file, _check(path, file))
        dump.require(model_fingerprint, text_fingerprint)
        stack.pop_all()
    return dump


def _check(path: Path, file: LocalFile) -> int:
    """Return the number of sentences."""
    form, complete, promised = (file.attrs.get(name) for name in ("format", "complete", "sentences"))
    found = len(file) - (SENTENCE_TO_INDEX in file)
    if form is not None and form != FORMAT:
        raise FormatError(f"{path} is of the format {form!r}, this toolkit reads {FORMAT!r}")
    if form is not None and not complete:
        raise FormatError(f"{path} is unfinished ({found} sentences): make it again")
    if form is not None and promised != found:
        raise FormatError(f"{path} holds {found} sentences and promises {promised}: make it again")
    if not found:
        raise FormatError(f"{path} is no dump, it holds no sentence: datasets should be named 0, 1, 2 …")
    if any(file.link(name) is None for name in ("0", str(found - 1))):
        strange = (name for name in file if name != SENTENCE_TO_INDEX and not _is_number_below(name, found))
        named = "datasets should be named 0, 1, 2 …"
        raise FormatError(f"{path} is no dump, it holds {next(strange, 'names that cannot be read')!r}: {named}")
    return found


def _is_number_below(name: str, end: int) -> bool:
    return name.isascii() and name.isdigit() and str(int(name)) == name and int(name) < end
