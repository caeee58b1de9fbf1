"""Dumps on disk, written: what of a sentence's layers is kept, and a file that a killed process can go on with.

See `dumpfile` for the layout. An unfinished dump is OUT.partial, with what its last commit needs in OUT.partial.side.
"""

import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

import toolkit
from toolkit.embed.dumpfile import FORMAT, SENTENCE_TO_INDEX
from toolkit.embed.partialfile import PartialFile, read_side
from toolkit.errors import DiskFullError, UsageError
from toolkit.files import room_for, sweep
from toolkit.hdf5 import DAMAGE

logger = logging.getLogger(__name__)

KINDS_OF_LAYERS = ("all", "top", "average")
BYTES_PER_DATASET = 370  # header, name and place in the group's index, measured with a million of them
# A compressed dataset costs 4 KiB more and gains a tenth: shorter sentences would only grow.
COMPRESS_FROM = 40 * 1024
GZIP_LEVEL = 4


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

    When it ends with one, or the process is killed, the sentences of the last `commit` are kept for `resume`; where
    there was none, nothing is left (of a killed process, a file that the next one replaces).

    Args:
        path: the file to be; an existing one is replaced at the end.
        attributes: what to say of the dump (model_fingerprint, layers, dtype, state …), texts and numbers.
        compress: gzip sentences that are long enough to gain by it.
        resume: go on with what an earlier writer committed, where there is something; `sentences` says how much.

    Attributes:
        sentences: how many the dump holds.
        tokens: how many they hold.
        memory: what the last commit was given.

    Raises:
        UsageError: there is an unfinished dump and `resume` is not set, or it is of other attributes, or another
            process is writing it.
        FormatError: what is to be resumed is damaged.
    """

    def __init__(self, path: Path, attributes: Mapping[str, Any], compress: bool = False, resume: bool = False) -> None:
        self.path, self._partial, self._side = (Path(f"{path}{end}") for end in ("", ".partial", ".partial.side"))
        self._attributes = {"format": FORMAT, "toolkit_version": toolkit.__version__, **attributes}
        self._compress, self._resume = compress, resume
        self.sentences = self.tokens = self._kept = 0
        self.memory: dict[str, np.ndarray] = {}

    def __enter__(self) -> "DumpWriter":
        self.path.parent.mkdir(parents=True, exist_ok=True)
        sweep(self.path.parent)
        unfinished = self._side.exists() and self._partial.exists()
        if unfinished:
            self._check_unfinished()
        else:
            self._side.unlink(missing_ok=True)  # of a dump that was finished, or removed by hand
        self._output = PartialFile(self._partial, self._side, restore=unfinished)
        if unfinished:
            self.memory = dict(self._output.note)
            self.sentences, self.tokens = (int(self.memory.pop(name)) for name in ("sentences", "tokens"))
            self._kept = self.sentences
            del self.memory["attributes"]
        self._file = h5py.File(self._output, "r+" if unfinished else "w")
        self._create = _Creator(self._file, self._compress)
        if not unfinished:
            for name, value in self._attributes.items():
                self._file.attrs[name] = value
        return self

    def write(self, embeddings: np.ndarray) -> None:
        """Write the next sentence, [L+1, T, 2P] or [T, 2P], in its own dtype.

        Raises:
            DiskFullError: the disk is full; what was committed is kept.
        """
        try:
            self._create(str(self.sentences), embeddings)
        except DAMAGE:  # behind a refused write HDF5 may read anything
            if self._output.failure is None:
                raise
        self._check_disk()
        self.sentences += 1
        self.tokens += embeddings.shape[-2]

    def write_index(self, index: str) -> None:
        """Write AllenNLP's table from sentence to number, a JSON text, unless a resumed dump has it."""
        if SENTENCE_TO_INDEX not in self._file:
            self._file.create_dataset(SENTENCE_TO_INDEX, (1,), dtype=h5py.string_dtype())[0] = index
        self._check_disk()

    def commit(self, memory: Mapping[str, np.ndarray]) -> None:
        """Make sure that the sentences so far survive, with what the caller needs to go on behind them.

        Raises:
            DiskFullError: the disk is full; what was committed before is kept.
        """
        self._file.flush()
        self._commit(memory)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._finish()
        except BaseException:
            self._give_up()
            raise
        if error is not None:
            self._give_up()

    def _check_unfinished(self) -> None:
        note = read_side(self._side)[-1]
        sentences, found = int(note["sentences"]), json.loads(str(note["attributes"]))
        if not self._resume:
            raise UsageError(
                f"{self._partial} holds the first {sentences:,} sentences of an unfinished dump: go on with --resume, "
                f"or remove it"
            )
        check_attributes(self._partial, found, self._attributes)

    def _check_disk(self) -> None:
        if self._output.failure is not None:
            try:
                with room_for(self.path):
                    raise self._output.failure
            except DiskFullError as error:
                raise DiskFullError(f"{error}{self._say_kept()}") from None

    def _say_kept(self) -> str:
        return f"; the first {self._kept:,} sentences are kept, --resume goes on behind them" if self._kept else ""

    def _commit(self, memory: Mapping[str, np.ndarray]) -> None:
        self._check_disk()
        counts = {"sentences": np.int64(self.sentences), "tokens": np.int64(self.tokens)}
        try:
            self._output.commit({**memory, **counts, "attributes": np.array(json.dumps(self._attributes))})
        except DiskFullError as error:
            raise DiskFullError(f"{error}{self._say_kept()}") from None
        self._kept, self.memory = self.sentences, dict(memory)

    def _finish(self) -> None:
        self._file.attrs["sentences"], self._file.attrs["tokens"] = self.sentences, self.tokens
        self._file.attrs["complete"] = True
        self._file.close()
        self._check_disk()
        if self._side.exists():  # else everything is in its place already
            self._commit(self.memory)
        self._output.finish()
        self._partial.replace(self.path)
        self._output.close()
        self._side.unlink(missing_ok=True)

    def _give_up(self) -> None:
        if self._output.failure is None:
            self._output.failure = OSError("given up")  # HDF5 writes on while it closes: nothing of it counts
        with suppress(*DAMAGE):
            self._file.close()
        if not self._side.exists():
            self._partial.unlink(missing_ok=True)
        self._output.close()
        if self._kept:
            logger.warning("%s: %s", self._partial, self._say_kept().removeprefix("; "))


def check_attributes(path: Path, found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Check that a dump is of this model, text and settings.

    Raises:
        UsageError: it is not; with the first value that differs and both values.
    """
    for name, value in expected.items():
        if found.get(name) != value:
            raise UsageError(
                f"{path} is a dump of another kind: its {name} is {found.get(name)!r}, here it would be {value!r}; "
                f"give another -o or remove it"
            )


class _Creator:
    """Creates and fills datasets by HDF5's own calls, in half the time that h5py's `create_dataset` takes."""

    def __init__(self, file: h5py.File, compress: bool) -> None:
        self._group, self._compress = file.id, compress
        self._plain = h5p.create(h5p.DATASET_CREATE)
        self._plain.set_obj_track_times(False)

    def __call__(self, name: str, data: np.ndarray) -> None:
        data = np.ascontiguousarray(data)
        kind, space = h5t.py_create(data.dtype), h5s.create_simple(data.shape)
        plain = not self._compress or data.nbytes < COMPRESS_FROM
        dataset = h5d.create(self._group, name.encode("ascii"), kind, space, self._plain if plain else _gzip(data))
        if data.size:
            dataset.write(h5s.ALL, h5s.ALL, data)


def _gzip(data: np.ndarray) -> h5p.PropDCID:
    properties = h5p.create(h5p.DATASET_CREATE)
    properties.set_obj_track_times(False)
    properties.set_chunk((1, *data.shape[1:]) if data.ndim == 3 else data.shape)  # a layer can be read alone
    properties.set_shuffle()
    properties.set_deflate(GZIP_LEVEL)
    return properties
