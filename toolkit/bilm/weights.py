"""The published HDF5 layout of a biLM's weights: which dataset holds which variable, and its shape."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import BinaryIO

import h5py
import numpy as np

from toolkit.bilm.backend import tf
from toolkit.bilm.model import BiLM
from toolkit.errors import FormatError
from toolkit.hdf5 import DAMAGE


@dataclass(frozen=True)
class Source:
    """An HDF5 file to read.

    Attributes:
        file: its path, or its content in memory.
        where: how messages call it.
    """

    file: str | BinaryIO
    where: str

    def opened(self) -> h5py.File:
        """Open it.

        Raises:
            FormatError: it is no HDF5 file, or cut short.
        """
        try:
            return h5py.File(self.file, "r")
        except DAMAGE as error:
            raise FormatError(f"{self.where} is not a readable HDF5 file ({error})") from None

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of a dataset, None where there is no such dataset."""
        with self.opened() as file:
            stored = file.get(name)
            return stored.shape if isinstance(stored, h5py.Dataset) else None


def datasets(bilm: BiLM) -> Iterator[tuple[str, tf.Variable, tuple | None]]:
    """Yield (dataset name, variable, part) for each published dataset; `part` indexes the variable, None is all."""
    spec = bilm.spec
    if bilm.char_cnn is None:
        yield "embedding", bilm.embedding, None
    else:
        cnn = bilm.char_cnn
        yield "char_embed", cnn.char_embed, (slice(1, None),)
        for i, (kernel, bias) in enumerate(zip(cnn.kernels, cnn.biases, strict=True)):
            yield f"CNN/W_cnn_{i}", kernel, (None,)
            yield f"CNN/b_cnn_{i}", bias, None
        for i, highway in enumerate(cnn.highways):
            yield from ((f"CNN_high_{i}/{name}", variable, None) for name, variable in highway.items())
        if cnn.projection is not None:
            yield "CNN_proj/W_proj", cnn.projection[0], None
            yield "CNN_proj/b_proj", cnn.projection[1], None
    for direction in range(spec.directions):
        for i, layer in enumerate(bilm.layers):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{i}/LSTMCell"
            yield f"{cell}/W_0", layer.kernel, (direction,)
            yield f"{cell}/B", layer.bias, (direction,)
            if spec.has_projection:
                yield f"{cell}/W_P_0", layer.projection, (direction,)


def write_weights(bilm: BiLM, file: h5py.File) -> None:
    """Write every weight, float32, under its published name."""
    for name, variable, part in datasets(bilm):
        value = variable.numpy()
        file.create_dataset(name, data=value if part is None else value[part])


def read_weights(bilm: BiLM, source: Source, table: Source | None = None) -> None:
    """Fill a biLM's variables from a published file.

    Args:
        bilm: gets the weights.
        source: the file.
        table: of a model that reads words, another file that holds its `embedding`; None for the same file.

    Raises:
        FormatError: a file is no HDF5 or damaged, lacks a dataset, or one has another shape than options.json asks for.
    """
    values: dict[int, tuple[tf.Variable, np.ndarray]] = {}
    with ExitStack() as stack:
        file = stack.enter_context(source.opened())
        other = stack.enter_context(table.opened()) if table else file
        for name, variable, part in datasets(bilm):
            place, holder = (table or source, other) if name == "embedding" else (source, file)
            _, value = values.setdefault(id(variable), (variable, variable.numpy()))
            _read(holder, name, value if part is None else value[part], place.where)
    for variable, value in values.values():
        if not np.isfinite(value).all():
            raise FormatError(f"{source.where} holds weights that are not finite numbers")
        variable.assign(value)


def _read(file: h5py.File, name: str, target: np.ndarray, where: str) -> None:
    try:
        stored = file.get(name)
        if not isinstance(stored, h5py.Dataset):
            raise FormatError(f"{where} lacks the dataset {name!r} that options.json asks for")
        if stored.shape != target.shape:
            raise FormatError(f"{where}: {name} has the shape {stored.shape}, options.json asks for {target.shape}")
        target[...] = stored[()]
    except DAMAGE as error:
        raise FormatError(f"{where} is damaged at {name} ({error})") from None


def weights_fingerprint(bilm: BiLM) -> str:
    """Return 16 hexadecimal digits that name shape and weights, whatever file they came from."""
    digest = hashlib.sha256(json.dumps(bilm.spec.to_options(), sort_keys=True).encode())
    for name, variable, part in datasets(bilm):
        value = variable.numpy()
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(value if part is None else value[part], "<f4"))
    return digest.hexdigest()[:16]
