"""The occurrences file: words in their sentences with the vectors of all layers (HDF5, no TensorFlow needed).

Datasets: `words`, `senses` (UTF-8 texts) and `positions`, `sentence` (int32), one entry an occurrence; `vectors`
float16 [n, L+1, 2P]; `sentences`, the distinct sentences as UTF-8 texts with one blank between tokens. The attributes
say which format, model and state.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import toolkit
from toolkit.errors import DataError, FormatError, UsageError, did_you_mean
from toolkit.hdf5 import damage_reported, open_hdf5, writing_hdf5
from toolkit.senses.sources import Occurrence

FORMAT = "elmo-toolkit occurrences 1"
TEXTS, NUMBERS = ("words", "senses", "sentences"), ("positions", "sentence")


@dataclass(frozen=True)
class Query:
    """An occurrence whose neighbours are wanted, from the file or from a free sentence.

    Attributes:
        word: lower-cased.
        position: of its token, from 0.
        tokens: the sentence.
        sense: the gold label, "" where none is known.
        vectors: float32 [L+1, 2P].
    """

    word: str
    position: int
    tokens: Sequence[str]
    sense: str
    vectors: np.ndarray


@dataclass(frozen=True)
class Occurrences:
    """All occurrences of one file; read only.

    Attributes:
        path: the file.
        words: n lower-cased words: what each occurrence is an occurrence of.
        positions: int32 [n], the token's place in its sentence, from 0.
        senses: n gold labels, "" where none is known.
        sentence_of: int32 [n], index into `sentences`.
        sentences: the distinct sentences, each a list of tokens.
        vectors: float16 [n, L+1, 2P]; layer 0 is the token vector twice.
        attributes: what the file says of itself; "model_fingerprint", "state" ("warm" or "zero"; of a dump what it
            says, or ""), "source", "model" or "embeddings" (where the model or the dump was).
    """

    path: Path
    words: list[str]
    positions: np.ndarray
    senses: list[str]
    sentence_of: np.ndarray
    sentences: list[list[str]]
    vectors: np.ndarray
    attributes: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.words)

    @property
    def n_layers(self) -> int:
        """Return L+1: layers are 0 (tokens) to L."""
        return self.vectors.shape[1]

    @property
    def model_fingerprint(self) -> str:
        """Return the 16 digits of the model that made the vectors."""
        return str(self.attributes["model_fingerprint"])

    @cached_property
    def counts(self) -> dict[str, int]:
        """The number of occurrences of each word, words in the order of the file."""
        return {word: len(indices) for word, indices in self._by_word.items()}

    @cached_property
    def _by_word(self) -> dict[str, np.ndarray]:
        groups: dict[str, list[int]] = {}
        for index, word in enumerate(self.words):
            groups.setdefault(word, []).append(index)
        return {word: np.array(indices) for word, indices in groups.items()}

    def of(self, word: str) -> np.ndarray:
        """Return the indices of a word's occurrences, int [m], rising; the word's case does not matter.

        Raises:
            UsageError: the file has no such word; with the nearest.
        """
        if word.lower() not in self._by_word:
            raise UsageError(f"{self.path} has no word {word!r}: {did_you_mean(word.lower(), self._by_word)}")
        return self._by_word[word.lower()]

    def tokens(self, index: int) -> list[str]:
        """Return the tokens of an occurrence's sentence."""
        return self.sentences[self.sentence_of[index]]

    def query(self, index: int) -> Query:
        """Return an occurrence as a query."""
        vectors = self.vectors[index].astype(np.float32)
        return Query(self.words[index], int(self.positions[index]), self.tokens(index), self.senses[index], vectors)


def save(
    path: Path,
    occurrences: Sequence[Occurrence],
    rows: Iterable[tuple[int, np.ndarray]],
    shape: tuple[int, int],
    attributes: Mapping[str, Any],
) -> None:
    """Write the file, whole or not at all.

    Args:
        path: the file.
        occurrences: what `rows` has the vectors of.
        rows: index into `occurrences` and float32 [L+1, 2P], each index once, in any order.
        shape: L+1 and 2P.
        attributes: see `Occurrences`.

    Raises:
        DataError: a vector does not fit into float16.
    """
    numbers: dict[tuple[str, ...], int] = {}
    for occurrence in occurrences:
        numbers.setdefault(occurrence.tokens, len(numbers))
    text = h5py.string_dtype("utf-8")
    with writing_hdf5(path) as file:
        file.attrs["format"], file.attrs["toolkit_version"] = FORMAT, toolkit.__version__
        for name, value in attributes.items():
            file.attrs[name] = value
        file.create_dataset("words", data=[occurrence.word for occurrence in occurrences], dtype=text)
        file.create_dataset("senses", data=[occurrence.sense for occurrence in occurrences], dtype=text)
        file.create_dataset("sentences", data=[" ".join(tokens) for tokens in numbers], dtype=text)
        file["positions"] = np.array([occurrence.position for occurrence in occurrences], np.int32)
        file["sentence"] = np.array([numbers[occurrence.tokens] for occurrence in occurrences], np.int32)
        vectors = file.create_dataset("vectors", (len(occurrences), *shape), np.float16)
        for index, row in rows:
            if not (np.abs(row) <= np.finfo(np.float16).max).all():
                raise DataError(f"the model's vectors of {occurrences[index].word!r} are not finite or beyond float16")
            vectors[index] = row
        file.attrs["complete"] = True


def load(path: Path) -> Occurrences:
    """Read an occurrences file (`occurrences.h5` of a senses run) into memory and check it.

    Raises:
        FormatError: there is no such file; it is no HDF5 file, of another kind or format, unfinished, cut short or
            inconsistent; the message says which.
    """
    path = Path(path)
    with open_hdf5(path, "occurrences file") as file:
        with damage_reported(str(path)):
            form, complete = file.attrs.get("format"), file.attrs.get("complete")
        if form != FORMAT:
            found = f"its format is {form!r}" if form is not None else "it does not say its format"
            raise FormatError(f"{path} is no occurrences file, {found}: this toolkit reads {FORMAT!r}")
        if not complete:
            raise FormatError(f"{path} is unfinished: run `toolkit senses index` again")
        with damage_reported(str(path)):
            texts = {name: list(file[name].asstr("utf-8")[()]) for name in TEXTS}
            positions, sentence_of = (file[name][()] for name in NUMBERS)
            vectors = file["vectors"][()]
            attributes = {name: getattr(value, "item", lambda v=value: v)() for name, value in file.attrs.items()}
    sentences = [text.split(" ") for text in texts["sentences"]]
    found = Occurrences(path, texts["words"], positions, texts["senses"], sentence_of, sentences, vectors, attributes)
    if problem := _problem(found):
        raise FormatError(f"{path} is damaged ({problem}): run `toolkit senses index` again")
    vectors.flags.writeable = False  # shared by the sessions of the dashboard
    return found


def _problem(o: Occurrences) -> str:
    lengths = {"words": len(o), "senses": len(o.senses), "vectors": len(o.vectors)}
    lengths |= {"positions": len(o.positions), "sentence": len(o.sentence_of)}
    if len(set(lengths.values())) > 1:
        return "lengths differ: " + ", ".join(f"{name} {length}" for name, length in lengths.items())
    if not len(o):
        return "it holds no occurrence"
    if o.vectors.ndim != 3 or o.vectors.dtype != np.float16:
        return f"vectors are {o.vectors.dtype} {o.vectors.shape}, expected float16 [n, layers, width]"
    if not np.isfinite(o.vectors).all():
        return "some vectors are not finite"
    if o.positions.dtype.kind != "i" or o.sentence_of.dtype.kind != "i":
        return "positions are no integers"
    if o.sentence_of.min() < 0 or o.sentence_of.max() >= len(o.sentences):
        return f"an occurrence points beyond the {len(o.sentences)} sentences"
    tokens = np.array([len(sentence) for sentence in o.sentences])[o.sentence_of]
    if (o.positions < 0).any() or (o.positions >= tokens).any():
        return "a position lies beyond its sentence"
    missing = [name for name in ("model_fingerprint", "state") if name not in o.attributes]
    return f"it does not say its {missing[0]}" if missing else ""
