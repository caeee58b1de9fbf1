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
from toolkit.bilm.spec import BiLMSpec
from toolkit.errors import FormatError
from toolkit.hdf5 import DAMAGE, open_local
from toolkit.text.chars import N_CHARACTERS


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
        return open_local(self.file, self.where)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of a dataset, None where there is no such dataset."""
        with self.opened() as file:
            stored = file.get(name)
            return stored.shape if isinstance(stored, h5py.Dataset) else None


def layout(spec: BiLMSpec) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield name and shape of each published dataset, without making any weights."""
    n, p, d = spec.n_filters, spec.projection_dim, spec.dim
    if spec.reads_words:
        yield "embedding", (spec.n_words, p)
    else:
        yield "char_embed", (N_CHARACTERS - 1, spec.char_dim)
        for i, (width, number) in enumerate(spec.filters):
            yield f"CNN/W_cnn_{i}", (1, width, spec.char_dim, number)
            yield f"CNN/b_cnn_{i}", (number,)
        for i in range(spec.n_highway):
            for name in ("carry", "transform"):
                yield f"CNN_high_{i}/W_{name}", (n, n)
                yield f"CNN_high_{i}/b_{name}", (n,)
        if n != p:
            yield "CNN_proj/W_proj", (n, p)
            yield "CNN_proj/b_proj", (p,)
    for direction in range(spec.directions):
        for i in range(spec.n_layers):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{i}/LSTMCell"
            yield f"{cell}/W_0", (2 * p, 4 * d)
            yield f"{cell}/B", (4 * d,)
            if spec.has_projection:
                yield f"{cell}/W_P_0", (d, p)


def datasets(bilm: BiLM) -> Iterator[tuple[str, tf.Variable, tuple | None]]:
    """Yield (dataset name, variable, part) for each published dataset; `part` indexes the variable, None is all."""
    for (name, _), (variable, part) in zip(layout(bilm.spec), _parts(bilm), strict=True):
        yield name, variable, part


def _parts(bilm: BiLM) -> Iterator[tuple[tf.Variable, tuple | None]]:
    """Yield variable and part of each dataset, in the order of `layout`."""
    if bilm.char_cnn is None:
        yield bilm.embedding, None
    else:
        cnn = bilm.char_cnn
        yield cnn.char_embed, (slice(1, None),)
        for kernel, bias in zip(cnn.kernels, cnn.biases, strict=True):
            yield from ((kernel, (None,)), (bias, None))
        yield from ((variable, None) for highway in cnn.highways for variable in highway.values())
        yield from ((variable, None) for variable in cnn.projection or ())
    for direction in range(bilm.spec.directions):
        for layer in bilm.layers:
            yield from (
                (variable, (direction,))
                for variable in (layer.kernel, layer.bias, layer.projection)
                if variable is not None
            )


def write_weights(bilm: BiLM, file: h5py.File) -> None:
    """Write every weight, float32, under its published name."""
    for name, variable, part in datasets(bilm):
        value = variable.numpy()
        file.create_dataset(name, data=value if part is None else value[part])


def read_weights(spec: BiLMSpec, source: Source, table: Source | None = None) -> BiLM:
    """Return the biLM of a published file, whose shapes are all checked before any memory is asked for.

    Args:
        spec: the shape that options.json asks for.
        source: the file.
        table: of a model that reads words, another file that holds its `embedding`; None for the same file.

    Raises:
        FormatError: a file is no HDF5 or damaged, points at another file, lacks a dataset, or one has another shape
            than options.json asks for.
    """
    values: dict[int, tuple[tf.Variable, np.ndarray]] = {}
    with ExitStack() as stack:
        file = stack.enter_context(source.opened())
        other = stack.enter_context(table.opened()) if table else file

        def found(name: str) -> tuple[h5py.File, str]:
            return (other, (table or source).where) if name == "embedding" else (file, source.where)

        for name, shape in layout(spec):
            _check(*found(name), name, shape)
        bilm = BiLM(spec, seed=None)
        for name, variable, part in datasets(bilm):
            _, value = values.setdefault(id(variable), (variable, variable.numpy()))
            _read(*found(name), name, value if part is None else value[part])
    for variable, value in values.values():
        if not np.isfinite(value).all():
            raise FormatError(f"{source.where} holds weights that are not finite numbers")
        variable.assign(value)
    return bilm


def _check(file: h5py.File, where: str, name: str, shape: tuple[int, ...]) -> None:
    try:
        stored = file.get(name)
    except DAMAGE as error:
        raise FormatError(f"{where} is damaged at {name} ({error})") from None
    if not isinstance(stored, h5py.Dataset):
        raise FormatError(f"{where} lacks the dataset {name!r} that options.json asks for")
    if stored.shape != shape:
        raise FormatError(f"{where}: {name} has the shape {stored.shape}, options.json asks for {shape}")


def _read(file: h5py.File, where: str, name: str, target: np.ndarray) -> None:
    try:
        target[...] = file[name][()]
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
