"""A model on disk: a folder (or NLPL zip) with options.json, one weights file, and what else belongs to the model."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from toolkit.bilm.model import BiLM
from toolkit.bilm.modelfiles import CARD, OPTIONS, SOFTMAX, VOCABULARY, WEIGHTS, ModelFiles
from toolkit.bilm.readers import refusals
from toolkit.bilm.spec import BiLMSpec
from toolkit.bilm.warming import WARM_MARK
from toolkit.bilm.weights import Source, read_weights, weights_fingerprint, write_weights
from toolkit.errors import FormatError, UsageError
from toolkit.files import atomic_folder, write_json
from toolkit.hdf5 import DAMAGE, open_local, writing_hdf5
from toolkit.text.vocab import Vocabulary

logger = logging.getLogger(__name__)


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
        """Whether the folder or zip brings an output layer with its vocabulary."""
        return self.vocabulary is not None and SOFTMAX in ModelFiles(self.path).names

    def softmax(self) -> Softmax:
        """Read the output layer.

        Raises:
            UsageError: the model came without one, or without its vocabulary.
            FormatError: the file is damaged or does not fit the vocabulary.
        """
        files = ModelFiles(self.path)
        if not self.has_softmax:
            raise UsageError(f"{self.path} holds no softmax ({SOFTMAX} with {VOCABULARY}): it cannot score text")
        where = files.where(SOFTMAX)
        try:
            with open_local(files.hdf5(SOFTMAX), where) as file:
                softmax = Softmax(file["softmax/W"][()], file["softmax/b"][()])
        except DAMAGE as error:
            raise FormatError(f"{where} is not a readable softmax file ({error})") from None
        expected = (len(self.vocabulary), self.spec.projection_dim)
        if softmax.weight.shape != expected or softmax.bias.shape != expected[:1]:
            raise FormatError(f"{where}: W has the shape {softmax.weight.shape}, {VOCABULARY} asks for {expected}")
        return softmax


def save_model(folder: Path, bilm: BiLM, vocabulary: Vocabulary, softmax: Softmax, card: Mapping[str, Any]) -> str:
    """Write a model folder in the published layout, whole or not at all, and return the model's fingerprint.

    Args:
        folder: replaced as a whole where it exists.
        bilm: the weights.
        vocabulary: the words of the softmax.
        softmax: the output layer, kept apart from the published weights.
        card: what the model is and how it was made, as JSON; see `full_card`.
    """
    document = full_card(bilm, card)
    with atomic_folder(folder) as temporary:
        write_json(temporary / OPTIONS, bilm.spec.to_options())
        with writing_hdf5(temporary / WEIGHTS) as file:
            write_weights(bilm, file)
        with writing_hdf5(temporary / SOFTMAX) as file:
            write_softmax(softmax, file)
        vocabulary.save(temporary / VOCABULARY)
        write_json(temporary / CARD, document)
    return document["fingerprint"]


def write_softmax(softmax: Softmax, file: h5py.File) -> None:
    """Write an output layer as `Model.softmax` reads it."""
    file["softmax/W"], file["softmax/b"] = softmax.weight, softmax.bias


def full_card(bilm: BiLM, card: Mapping[str, Any]) -> dict[str, Any]:
    """Return a card with what follows from the weights.

    That is `fingerprint`; `warm_state`, the mark of how the warm state is made, without which the fingerprint does not
    say which warm vectors the weights give; and `refused_by`, a reader and a reason for each other program that cannot
    read the shape.
    """
    return {
        **card,
        "fingerprint": weights_fingerprint(bilm),
        "warm_state": WARM_MARK,
        "refused_by": [vars(refusal) for refusal in refusals(bilm.spec)],
    }


def load_model(path: Path) -> Model:
    """Load a model from a folder in the published layout or from a zip in the NLPL layout (not unpacked to disk).

    Options without `char_cnn` make a model that reads words: the rows of `embedding`, which lies among the weights or,
    as a cached token table of bilm-tf or `toolkit embed-tokens`, in a file of its own beside them.

    Args:
        path: options.json (or `<name>_options.json`), the weights as the one *.hdf5 with LSTMs, and where there is one
            vocab.txt or vocab.txt.gz.

    Raises:
        FormatError: something is missing, damaged or does not fit, as weights whose fingerprint is not
            the card's; the message names the file.
    """
    files = ModelFiles(path)
    options = files.json(files.options)
    source, table = _source(files, files.weights), None
    if options.get("char_cnn") is None:
        options, table = _words_as_input(files, options, source)
    bilm = read_weights(BiLMSpec.from_options(options), source, table)
    card = files.json(CARD) if CARD in files.names else {}
    fingerprint = weights_fingerprint(bilm)
    if card.get("fingerprint", fingerprint) != fingerprint:
        raise FormatError(
            f"{source.where} is damaged or from another model: its fingerprint is {fingerprint}, {CARD} records "
            f"{card['fingerprint']}: copy the model again, or remove {CARD} if you changed the weights"
        )
    if card.get("warm_state", WARM_MARK) != WARM_MARK:
        logger.warning("%s: another warm state than today's stood when it was made: dump its vectors again", files.path)
    return Model(bilm, _vocabulary(files, bilm.spec), card, fingerprint, files.path)


def _source(files: ModelFiles, name: str) -> Source:
    return Source(files.hdf5(name), files.where(name))


def _words_as_input(files: ModelFiles, options: dict, source: Source) -> tuple[dict, Source | None]:
    """The options with `n_tokens_vocab`, and the file beside the weights that holds the table, if one does."""
    table = None
    if source.shape("embedding") is None and files.token_table:
        table = _source(files, files.token_table)
    shape = (table or source).shape("embedding")
    return ({"n_tokens_vocab": shape[0]} if shape else {}) | options, table


def _vocabulary(files: ModelFiles, spec: BiLMSpec) -> Vocabulary | None:
    """The words of the softmax or of the input; None where there are none, or a list that no softmax can have."""
    name = files.vocabulary
    if name is None:
        return None
    where, content = files.where(name), files.read(name)
    try:
        vocabulary = Vocabulary.parse(content, where)
    except FormatError as error:
        if spec.reads_words or SOFTMAX in files.names:
            raise
        # Published models bring any word list here, which other programs use to cache character ids.
        logger.info("%s is not needed and left aside: %s", where, error)
        return None
    if spec.n_words not in (None, len(vocabulary)):
        raise FormatError(f"{where} holds {len(vocabulary)} words, n_tokens_vocab of {OPTIONS} is {spec.n_words}")
    return vocabulary
