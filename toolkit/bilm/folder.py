"""A model on disk: a folder (or NLPL zip) with options.json, one weights file, and what else belongs to the model."""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from toolkit.bilm.model import BiLM
from toolkit.bilm.readers import refusals
from toolkit.bilm.spec import BiLMSpec
from toolkit.bilm.weights import read_weights, weights_fingerprint, write_weights
from toolkit.errors import FormatError, UsageError
from toolkit.files import atomic_folder, read_json, write_json
from toolkit.hdf5 import writing_hdf5
from toolkit.text.vocab import Vocabulary

OPTIONS, WEIGHTS, VOCABULARY, CARD = "options.json", "weights.hdf5", "vocab.txt", "card.json"
# Not "*.hdf5": other readers take the first *.hdf5 of a folder for the weights.
SOFTMAX = "softmax.h5"


@dataclass(frozen=True)
class Softmax:
    """The output layer that both directions share: W float32 [V, P] and b float32 [V]."""

    weight: np.ndarray
    bias: np.ndarray


@dataclass(frozen=True)
class Model:
    """A biLM with what its folder says of it.

    Attributes:
        bilm: the weights.
        vocabulary: the words of the softmax, None where the folder has none.
        card: tokeniser, casing, training, versions; empty for models of other makers.
        fingerprint: 16 hexadecimal digits that name shape and weights.
        path: the folder or zip.
    """

    bilm: BiLM
    vocabulary: Vocabulary | None
    card: Mapping[str, Any]
    fingerprint: str
    path: Path

    @property
    def spec(self) -> BiLMSpec:
        """The shape."""
        return self.bilm.spec

    @property
    def has_softmax(self) -> bool:
        """Whether the folder brings an output layer with its vocabulary."""
        return self.vocabulary is not None and (self.path / SOFTMAX).is_file()

    def softmax(self) -> Softmax:
        """Read the output layer.

        Raises:
            UsageError: the model came without one, or without its vocabulary.
            FormatError: the file is damaged or does not fit the vocabulary.
        """
        path = self.path / SOFTMAX
        if not self.has_softmax:
            raise UsageError(f"{self.path} holds no softmax ({SOFTMAX} with {VOCABULARY}): it cannot score text")
        try:
            with h5py.File(path, "r") as file:
                softmax = Softmax(file["softmax/W"][()], file["softmax/b"][()])
        except (OSError, KeyError) as error:
            raise FormatError(f"{path} is not a readable softmax file ({error})") from None
        expected = (len(self.vocabulary), self.spec.projection_dim)
        if softmax.weight.shape != expected or softmax.bias.shape != expected[:1]:
            raise FormatError(f"{path}: W has the shape {softmax.weight.shape}, {VOCABULARY} asks for {expected}")
        return softmax


def save_model(folder: Path, bilm: BiLM, vocabulary: Vocabulary, softmax: Softmax, card: Mapping[str, Any]) -> str:
    """Write a model folder in the published layout, whole or not at all, and return the model's fingerprint.

    Args:
        folder: replaced as a whole where it exists.
        bilm: the weights.
        vocabulary: the words of the softmax.
        softmax: the output layer, kept apart from the published weights.
        card: what the model is and how it was made, as JSON; `refused_by` is added to it, a reader and a reason for
            each other program that cannot read the shape.
    """
    mark = weights_fingerprint(bilm)
    with atomic_folder(folder) as temporary:
        write_json(temporary / OPTIONS, bilm.spec.to_options())
        with writing_hdf5(temporary / WEIGHTS) as file:
            write_weights(bilm, file)
        with writing_hdf5(temporary / SOFTMAX) as file:
            file["softmax/W"], file["softmax/b"] = softmax.weight, softmax.bias
        vocabulary.save(temporary / VOCABULARY)
        refused = [vars(refusal) for refusal in refusals(bilm.spec)]
        write_json(temporary / CARD, {**card, "fingerprint": mark, "refused_by": refused})
    return mark


def weights_file(folder: Path) -> Path:
    """Return the one weights file of a model folder.

    Raises:
        FormatError: the folder has no options.json, no weights file, or more than one.
    """
    if not (folder / OPTIONS).is_file():
        raise FormatError(f"{folder} is no model folder: {OPTIONS} is missing")
    found = [path for path in sorted(folder.glob("*.hdf5")) if "softmax" not in path.name]
    named = [path for path in found if path.name in (WEIGHTS, "model.hdf5")]
    if not found:
        raise FormatError(f"{folder} holds {OPTIONS} but no weights (*.hdf5): copy the weights file beside it")
    if len(named or found) > 1:
        raise FormatError(f"{folder} holds several weights files ({', '.join(p.name for p in found)}): keep one")
    return (named or found)[0]


def load_model(path: Path) -> Model:
    """Load a model from a folder in the published layout or from a zip in the NLPL layout (not unpacked to disk).

    Raises:
        FormatError: something is missing, damaged or does not fit; the message names the file.
    """
    path = Path(path)
    if path.is_dir():
        weights = weights_file(path)
        bilm = BiLM(BiLMSpec.from_options(read_json(path / OPTIONS)))
        read_weights(bilm, str(weights), str(weights))
        vocabulary = Vocabulary.load(path / VOCABULARY) if (path / VOCABULARY).is_file() else None
        rows = bilm.spec.n_words
        if rows is not None and vocabulary is not None and len(vocabulary) != rows:
            raise FormatError(
                f"{path / VOCABULARY} holds {len(vocabulary)} words, n_tokens_vocab of {OPTIONS} is {rows}"
            )
        card = read_json(path / CARD) if (path / CARD).is_file() else {}
        return Model(bilm, vocabulary, card, weights_fingerprint(bilm), path)
    if zipfile.is_zipfile(path):
        return _load_zip(path)
    raise FormatError(f"{path} is neither a model folder nor a zip of one")


def _load_zip(path: Path) -> Model:
    """The NLPL layout: options.json and model.hdf5 at the top level; its vocab.txt, if any, is not of a softmax."""
    with zipfile.ZipFile(path) as archive:
        try:
            options = json.loads(archive.read(OPTIONS))
            weights = io.BytesIO(archive.read("model.hdf5"))
        except KeyError:
            raise FormatError(f"{path} is no NLPL model: it lacks {OPTIONS} or model.hdf5 at the top level") from None
        except (ValueError, zipfile.BadZipFile) as error:
            raise FormatError(f"{path} is damaged ({error})") from None
    bilm = BiLM(BiLMSpec.from_options(options))
    if bilm.spec.reads_words:
        raise FormatError(f"{path} holds a model that reads words, which a zip cannot bring: unpack it to a folder")
    read_weights(bilm, weights, f"{path}:model.hdf5")
    return Model(bilm, None, {}, weights_fingerprint(bilm), path)
