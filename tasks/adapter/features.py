"""The layers of a task's sentences: encoded once a model, kept in the cache, read from disk as batches ask for them."""

import logging
import math
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tasks.task import Splits
from toolkit.errors import FormatError
from toolkit.files import atomic_folder, fingerprint
from toolkit.progress import Progress

logger = logging.getLogger(__name__)

LAYOUT = 1  # to be raised when the files change their meaning
LAYERS, OFFSETS = "layers.npy", "offsets.npy"

Encode = Callable[[Iterable[Sequence[str]]], Iterable[np.ndarray]]


@dataclass(frozen=True)
class LayerSource:
    """Something that gives the layers of sentences: an encoder with a model behind it, or dumps.

    Attributes:
        name: for people.
        fingerprint: of the model, 16 hexadecimal digits; of dumps what they say, see `tasks.adapter.dumps`.
        state: how the state before each sentence is set; of dumps what tells one version of the files from another.
        n_layers: L+1; 1 where a dump holds one layer, which then has no x_k beside it.
        width: 2P; P of a forward model.
        encode: from sentences to float [L+1, T, 2P] each, in the same order.
        directions: how often layer 0 holds the token vector, side by side: 1 for a forward model.
        names: of x_k and of the mix, for people.
        label: stands in the names of runs; "" for a biLM.
        embed: settings of [embed] that the vectors were made with, where they are not the user's.
        check: refuses splits whose sentences the source does not hold.
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
    embed: Mapping[str, object] = field(default_factory=dict)
    check: Callable[[Splits], None] = lambda splits: None


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
    sentences: Sequence[Sequence[str]], source: LayerSource, data_fingerprint: str, cache: Path
) -> Features:
    """Return the layers of sentences, from the cache where they were encoded before.

    Args:
        sentences: at least one, none empty.
        source: what encodes them.
        data_fingerprint: of the sentences.
        cache: they lie in `cache/layers/<key>/`, float16, and can be deleted at any time.

    Raises:
        FormatError: a vector is too large for float16, or not finite.
    """
    key = fingerprint([LAYOUT, source.fingerprint, source.state, data_fingerprint])
    folder = cache / "layers" / key
    offsets = np.concatenate([[0], np.cumsum([len(sentence) for sentence in sentences])]).astype(np.int64)
    shape = (int(offsets[-1]), source.n_layers, source.width)
    found = _read(folder, shape, offsets)
    if found is None:
        size = 2 * math.prod(shape) / 1e6
        logger.info("encoding %d sentences once, for all mixes and seeds (%.0f MB in %s)", len(sentences), size, folder)
        with atomic_folder(folder) as temporary:
            _write(temporary, sentences, source, shape, offsets)
        found = Features(np.load(folder / LAYERS, mmap_mode="r", allow_pickle=False), offsets)
    return found


def _read(folder: Path, shape: tuple[int, ...], offsets: np.ndarray) -> Features | None:
    if not folder.exists():
        return None
    try:
        layers = np.load(folder / LAYERS, mmap_mode="r", allow_pickle=False)
        same = np.array_equal(np.load(folder / OFFSETS, allow_pickle=False), offsets)
    except (OSError, ValueError, EOFError) as error:
        reason = str(error)
    else:
        if same and layers.shape == shape and layers.dtype == np.float16:
            logger.info("layers of %d sentences taken from %s", len(offsets) - 1, folder)
            return Features(layers, offsets)
        reason = f"it holds {layers.dtype} {layers.shape}, expected float16 {shape}"
    logger.warning("%s is damaged and made again: %s", folder, reason)
    shutil.rmtree(folder)
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
