"""Dumps on disk, written: what of a sentence's layers is kept, and the file, whole or not at all (see `dumpfile`)."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

import toolkit
from toolkit.embed.dumpfile import FORMAT
from toolkit.errors import UsageError
from toolkit.hdf5 import writing_hdf5

KINDS_OF_LAYERS = ("all", "top", "average")


def choose_layers(embeddings: np.ndarray, layers: str) -> np.ndarray:
    """Return what a dump of `layers` keeps of one sentence's embeddings.

    Args:
        embeddings: [L+1, T, 2P].
        layers: "all" keeps the shape; "top", "average" (unweighted) or a layer's number give [T, 2P].
    """
    if layers == "all":
        return embeddings
    if layers == "average":
        return embeddings.mean(0)
    return embeddings[-1 if layers == "top" else int(layers)]


def check_layers(layers: str, n_layers: int) -> None:
    """Check a choice of layers.

    Args:
        layers: see `choose_layers`.
        n_layers: L; a number may go from 0, the token layer, to L.

    Raises:
        UsageError: there is no such layer.
    """
    if layers not in KINDS_OF_LAYERS and layers not in map(str, range(n_layers + 1)):
        raise UsageError(f"no layers {layers!r} in this model: choose all, top, average or one of 0 to {n_layers}")


class DumpWriter:
    """Writes a dump; use it as a context manager. The file appears when the block ends without an error.

    Args:
        path: the file to be; an existing one is replaced at the end.
        attributes: what to say of the dump (model_fingerprint, layers, dtype, state …), texts and numbers.
    """

    def __init__(self, path: Path, attributes: Mapping[str, Any]) -> None:
        self._path, self._attributes = Path(path), attributes
        self._sentences = self._tokens = 0
        self._stack = ExitStack()

    def __enter__(self) -> "DumpWriter":
        with ExitStack() as stack:
            self._file = stack.enter_context(writing_hdf5(self._path))
            self._file.attrs["format"] = FORMAT
            self._file.attrs["toolkit_version"] = toolkit.__version__
            for name, value in self._attributes.items():
                self._file.attrs[name] = value
            stack.push(self._finish)
            self._stack = stack.pop_all()
        return self

    def write(self, embeddings: np.ndarray) -> None:
        """Write the next sentence, [L+1, T, 2P] or [T, 2P], in its own dtype."""
        self._file.create_dataset(str(self._sentences), data=embeddings)
        self._sentences += 1
        self._tokens += embeddings.shape[-2]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def _finish(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self._file.attrs["sentences"], self._file.attrs["tokens"] = self._sentences, self._tokens
            self._file.attrs["complete"] = True
