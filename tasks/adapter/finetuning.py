"""Fine-tuning: the biLM as trained layers below a head, fed with real sentences in place of cached layers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tasks.adapter.features import LayerSource
from tasks.adapter.head import find_head
from tasks.adapter.representation import Representation
from toolkit.bilm.backend import tf
from toolkit.bilm.weights import weights_fingerprint
from toolkit.config import Evaluate
from toolkit.errors import UsageError
from toolkit.keras.bilm_layer import BiLMLayer


@dataclass(frozen=True)
class Sentences:
    """Sentences in a row, in the place of their `Features`.

    Attributes:
        tokens: of each sentence.
    """

    tokens: Sequence[Sequence[str]]

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where each sentence begins, int64 [sentences+1]."""
        return np.concatenate([[0], np.cumsum([len(sentence) for sentence in self.tokens])]).astype(np.int64)

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each sentence, int64 [sentences]."""
        return np.diff(self.offsets)

    def batch(self, rows: Sequence[int] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the tokens of some sentences, texts [B, T], "" behind each, and lengths int32 [B]."""
        lengths = self.lengths[rows].astype(np.int32)
        padded = np.full((len(lengths), lengths.max()), "", object)
        for place, row in enumerate(rows):
            padded[place, : lengths[place]] = self.tokens[row]
        return padded, lengths


def check_finetuning(source: LayerSource, representations: Sequence[Representation], settings: Evaluate) -> None:
    """Refuse what cannot be fine-tuned before anything is computed for it.

    Raises:
        UsageError: there is no biLM behind the source, none of it is in the vectors, the head is solved on fixed
            vectors, or the biLM would not compute here as it does where it is frozen.
    """
    if not settings.finetune_rate:
        return
    refusal = "evaluate.finetune_rate is above 0"
    if source.model is None:
        raise UsageError(f"{refusal}, but {source.name} holds vectors and no biLM to train: give --model")
    if find_head(settings.head).is_linear:
        raise UsageError(f"{refusal}, but head {settings.head!r} is solved on fixed vectors: take another, as bilstm")
    if source.state.startswith("stateful"):
        raise UsageError(f"{refusal}, but in embed.state=stateful sentences hang together: take warm or zero")
    if source.compute != "float32":
        raise UsageError(f"{refusal}, which computes in float32: leave embed.compute={source.compute} out")
    for one in representations:
        if one.form == "none" and one.x_k_width:
            raise UsageError(
                f"{refusal}, but mix {one.mix!r} with evaluate.word_vectors={settings.word_vectors!r} leaves nothing "
                "of the biLM: take another mix, or --word-vectors model"
            )


def weights_told(source: LayerSource, rate: float, tuned: Sequence[BiLMLayer]) -> dict[str, Any] | None:
    """Return what `results.json` says of the biLM's weights; None of dumps.

    Args:
        source: what gave the layers.
        rate: at which they were trained, 0 where they were frozen.
        tuned: the trained biLM of each round; none where it was frozen.

    Returns:
        whether they were trained, the rate, and their fingerprints: before, and of each round's behind its training;
        of frozen weights what they are by now.
    """
    if source.model is None:
        return None
    after = [layer.fingerprint() for layer in tuned] or [weights_fingerprint(source.model.bilm)]
    told = {"fine_tuned": bool(tuned), "learning_rate": rate}
    return told | {"checksum_before": source.model.fingerprint, "checksums_after": after}


def bilm_below(source: LayerSource) -> BiLMLayer:
    """Return the biLM of a source as a layer, with a copy of its weights and the state that its sentences start from.

    That state stays as it is while the weights learn.
    """
    layer = BiLMLayer.of(source.model, name="bilm")
    if source.state.startswith("zero"):
        for part in layer.start:
            part.assign(tf.zeros_like(part))
    return layer


def copy_of(layer: BiLMLayer) -> BiLMLayer:
    """Return another layer with the same weights and the same start, for a training of its own."""
    copied = BiLMLayer.from_config(layer.get_config())
    copied.set_weights(layer.get_weights())
    return copied
