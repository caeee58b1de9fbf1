"""The LSTM states that a sentence starts from."""

from typing import Literal

import numpy as np

from toolkit.bilm.inference import Inference
from toolkit.bilm.model import States
from toolkit.bilm.warming import PASSES, WARM_MARK, WARMING
from toolkit.embed.tokens import TokenTable
from toolkit.text.vocab import BOS, EOS

StateMode = Literal["warm", "zero", "stateful"]


def warm_state(inference: Inference, tokens: TokenTable) -> States:
    """Return the warm state: the one behind `WARMING`, both marks included, read `PASSES` times from zero.

    A biLM is trained with states that are carried from sentence to sentence, so a sentence that starts from zero starts
    where training hardly ever was. From the warm state it starts where training did, and yet its vectors depend on
    nothing but the sentence and the weights. The state follows from the weights alone: every load, process and batch
    gets the same one.

    Args:
        inference: the biLM.
        tokens: its token vectors.

    Returns:
        cells float32 [L, R, 1, D] and outputs float32 [L, R, 1, P], R directions: one row, to be repeated for a batch.
    """
    x = tokens.vectors([BOS, *WARMING.split(), EOS])
    forward = np.arange(len(x), dtype=np.int32)
    places = np.stack([forward, forward[::-1]][: inference.spec.directions], 1)[..., None]
    states = start = inference.bilm.zero_state(1)
    for _ in range(PASSES):
        _, states = inference.layers(x, places, states, np.zeros((len(x), 1), bool), start)
    return states


def state_mark(state: StateMode) -> str:
    """Return what names the start of a sentence: "zero", "stateful", or "warm-" and the digits of its making.

    Vectors of one text compare only where the model's fingerprint and this mark are the same, so that both go into
    whatever stores vectors.
    """
    return f"warm-{WARM_MARK}" if state == "warm" else state
