"""The layers of a task's sentences: encoded once a model, kept in the cache, read from disk as batches ask for them."""

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tasks.adapter.cache import LayerCache
from tasks.task import Splits
from toolkit.bilm.folder import Model
from toolkit.errors import FormatError
from toolkit.files import fingerprint
from toolkit.progress import Progress

logger = logging.getLogger(__name__)

LAYOUT = 2  # to be raised when the files change their meaning
LAYERS, OFFSETS = "layers.npy", "offsets.npy"
HEADER_BYTES = 128  # of a .npy file of few dimensions

Encode = Callable[[Iterable[Sequence[str]]], Iterable[np.ndarray]]


@dataclass(frozen=True)
class LayerSource:
    """Something that gives the layers of sentences: an encoder with a model behind it, or dumps.

    Attributes:
        name: for people.
        fingerprint: of the model, 16 hexadecimal digits; of dumps what they say, see `tasks.adapter.dumps`.
        state: the mark of the state before each sentence; of dumps what tells one version of the files from another.
        n_layers: L+1; 1 where a dump holds one layer, which then has no x_k beside it.
        width: 2P; P of a forward model.
        encode: from sentences to float [L+1, T, 2P] each, in the same order.
        directions: how often layer 0 holds the token vector, side by side: 1 for a forward model.
        names: of x_k and of the mix, for people.
        label: stands in the names of runs; "" for a biLM.
        compute: dtype of the products that the vectors were computed with; of dumps it is in `state`.
        embed: settings of [embed] that the vectors were made with, where they are not the user's.
        check: refuses splits whose sentences the source does not hold.
        model: the biLM behind it; None of dumps.
        tokens: turns a sentence's tokens into as many that the encoder reads.
    """

    name: str
    fingerprint: str
    state: str
    n_layers: int
    width: int
    encode: Encode
    directions: int = 2
    names: tuple[str, str] = ("x_k", "ELMo")
    label: str = ""
    compute: str = ""
    embed: Mapping[str, object] = field(default_factory=dict)
    check: Callable[[Splits], None] = lambda splits: None
    model: Model | None = None
    tokens: Callable[[Sequence[str]], Sequence[str]] = list


@dataclass(frozen=True)
class Features:
    """The layers of sentences in a row.

    Attributes:
        layers: float16 [all tokens, L+1, 2P], perhaps memory-mapped.
        offsets: int64 [sentences+1], where each sentence begins.
    """

    layers: np.ndarray
    offsets: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each sentence, int64 [sentences]."""
        return np.diff(self.offsets)

    def batch(self, rows: Sequence[int] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the layers of some sentences, float16 [B, T, L+1, 2P], zeros behind each, and lengths int32 [B]."""
        lengths = self.lengths[rows].astype(np.int32)
        padded = np.zeros((len(lengths), lengths.max(), *self.layers.shape[1:]), np.float16)
        for place, (row, length) in enumerate(zip(rows, lengths, strict=True)):
            start = self.offsets[row]
            padded[place, :length] = self.layers[start : start + length]
        return padded, lengths


def features_of(
    sentences: Sequence[Sequence[str]], source: LayerSource, data_fingerprint: str, cache: LayerCache
) -> Features:
    """Return the layers of sentences, from the cache where they were encoded before.

    Args:
        sentences: at least one, none empty.
        source: what encodes them.
        data_fingerprint: of the sentences.
        cache: where they are kept, float16, a folder for each fingerprint of model and data and each mark of the state.

    Raises:
        FormatError: a vector is too large for float16, or not finite.
        UsageError: they need more room than the cache may take.
    """
    key = fingerprint([LAYOUT, source.fingerprint, source.state, source.compute, data_fingerprint])
    offsets = np.concatenate([[0], np.cumsum([len(sentence) for sentence in sentences])]).astype(np.int64)
    shape = (int(offsets[-1]), source.n_layers, source.width)
    size = 2 * math.prod(shape) + offsets.nbytes + 2 * HEADER_BYTES

    def write(folder: Path) -> None:
        logger.info("encoding %d sentences once, for all mixes, heads and seeds (%.0f MB)", len(sentences), size / 1e6)
        _write(folder, sentences, source, shape, offsets)

    return cache.get(key, lambda folder: _read(folder, shape, offsets), write, size)


def _read(folder: Path, shape: tuple[int, ...], offsets: np.ndarray) -> Features | None:
    try:
        layers = np.load(folder / LAYERS, mmap_mode="r", allow_pickle=False)
        same = np.array_equal(np.load(folder / OFFSETS, allow_pickle=False), offsets)
    except (OSError, ValueError, EOFError) as error:
        reason = str(error)
    else:
        if same and layers.shape == shape and layers.dtype == np.float16:
            logger.info("layers of %d sentences from %s", len(offsets) - 1, folder)
            return Features(layers, offsets)
        reason = f"it holds {layers.dtype} {layers.shape}, expected float16 {shape}"
    logger.warning("%s is damaged and made again: %s", folder, reason)
    return None


def _write(
    folder: Path, sentences: Sequence[Sequence[str]], source: LayerSource, shape: tuple[int, ...], offsets: np.ndarray
) -> None:
    np.save(folder / OFFSETS, offsets, allow_pickle=False)
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(np.float16)), "fortran_order": False, "shape": shape}
    # Written as a stream and not through a memory map: a full disk is then an error and no SIGBUS.
    with (folder / LAYERS).open("wb") as file, Progress("encoding", shape[0], "tokens") as bar:
        np.lib.format.write_array_header_1_0(file, header)
        for sentence, layers in zip(sentences, source.encode(sentences), strict=True):
            expected = (source.n_layers, len(sentence), source.width)
            if layers.shape != expected:
                raise FormatError(f"{source.name} gives {layers.shape} for a sentence, expected {expected}")
            with np.errstate(over="ignore"):  # said below, with the value
                half = np.ascontiguousarray(layers.transpose(1, 0, 2), np.float16)
            if not np.isfinite(half).all():
                raise FormatError(f"{source.name} gives vectors up to {np.abs(layers).max():g}: not for float16")
            file.write(half.tobytes())
            bar.advance(len(sentence))
