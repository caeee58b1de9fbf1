"""Sentences to the layers of a biLM, streaming."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from toolkit.bilm.backend import tf
from toolkit.bilm.folder import Model
from toolkit.bilm.inference import Inference
from toolkit.embed.packing import pieces
from toolkit.embed.states import StateMode, warm_state
from toolkit.embed.tokens import TokenTable
from toolkit.errors import UsageError, did_you_mean
from toolkit.text.vocab import BOS, EOS

WINDOW_BYTES = 512 << 20  # of results that are computed together
WINDOW_BATCHES = 8

Compute = Literal["float32", "bfloat16"]


class Encoder:
    """Encodes sentences with one model.

    In the states "warm" (see `states.warm_state`) and "zero" each sentence starts from one fixed state: its vectors
    depend on the sentence alone, not on batch, order or process: to the bit in bfloat16, up to rounding (about 1e-6) in
    float32, whose products sum in an order that depends on the batch size. "stateful" is bilm-tf
    fed one sentence at a time: all sentences that this object ever encodes are one stream, in order, from zero; the
    state behind each is the start of the next, and an empty sentence takes part as its two marks.

    The backward LSTM reads each sentence reversed over its own length, `</S>` first. Padding never reaches a result.

    Args:
        model: from `toolkit.bilm.folder.load_model`.
        state: "warm", "zero" or "stateful".
        batch_tokens: tokens encoded at a time, marks included; sentences lie end to end in its rows (see `pieces`), and
            what reaches beyond goes on in the next with the states carried.
        compute: dtype of the matrix products; vectors are float32 with both. bfloat16 is faster where the hardware has
            it, at a relative error of about 4e-3.

    Attributes:
        window_tokens: sentences are read ahead and packed until they hold this many tokens, marks included.

    Raises:
        UsageError: the state is unknown, or the model lacks a vocabulary that it needs.
    """

    def __init__(
        self, model: Model, state: StateMode = "warm", batch_tokens: int = 8192, compute: Compute = "float32"
    ) -> None:
        if state not in get_args(StateMode):
            raise UsageError(f"unknown state {state!r}: {did_you_mean(state, get_args(StateMode))}")
        self.model, self.state = model, state
        self._inference = Inference(model.bilm, tf.as_dtype(compute))
        self._tokens = TokenTable(self._inference, model.vocabulary)
        self._start = warm_state(self._inference, self._tokens) if state == "warm" else model.bilm.zero_state(1)
        self._batch_tokens = batch_tokens
        bytes_per_token = 4 * (model.spec.n_layers + 1) * model.spec.width
        self.window_tokens = min(WINDOW_BATCHES * batch_tokens, max(batch_tokens, WINDOW_BYTES // bytes_per_token))

    def encode(self, sentences: Iterable[Sequence[str]], marks: bool = False) -> Iterator[np.ndarray]:
        """Yield the layers of each sentence, in input order.

        Args:
            sentences: tokens, read as far ahead as one window of batches; words of any length, empty sentences too.
            marks: whether the results keep `<S>` and `</S>`.

        Yields:
            float32 [L+1, T, 2P] without the marks, [L+1, T+2, 2P] with them; layer 0 is the token vector twice. An
            empty sentence gives [L+1, 0, 2P]. A forward model gives P for 2P, and layer 0 once.
        """
        if self.state == "stateful":
            for sentence in sentences:
                yield from self._encode([sentence], marks)
            return
        for window in self._windows(sentences):
            yield from self._encode(window, marks)

    def token_vectors(self, words: Sequence[str]) -> np.ndarray:
        """Return the context-independent vectors of words, float32 [n, P]."""
        return self._tokens.vectors(words)

    def memory(self) -> dict[str, np.ndarray]:
        """Return what this object keeps from window to window: the token table, and of "stateful" the states.

        An object of the same settings that is given it by `restore` goes on behind a window to the same bits.
        """
        words, vectors = self._tokens.kept()
        memory = {"words": np.frombuffer("\n".join(words).encode("utf-8"), np.uint8), "vectors": vectors}
        if self.state == "stateful":
            memory |= {"cells": self._start[0].numpy(), "outputs": self._start[1].numpy()}
        return memory

    def restore(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take over what `memory` gave."""
        words = memory["words"].tobytes().decode("utf-8")
        self._tokens.restore(words.split("\n") if words else [], memory["vectors"])
        if self.state == "stateful":
            self._start = tf.constant(memory["cells"]), tf.constant(memory["outputs"])

    def _windows(self, sentences: Iterable[Sequence[str]]) -> Iterator[list[Sequence[str]]]:
        window, tokens = [], 0
        for sentence in sentences:
            window.append(sentence)
            tokens += len(sentence) + 2
            if tokens >= self.window_tokens:
                yield window
                window, tokens = [], 0
        if window:
            yield window

    def _encode(self, sentences: list[Sequence[str]], marks: bool) -> Iterator[np.ndarray]:
        """Yield the layers of sentences that are encoded together."""
        spec, p = self.model.spec, self.model.spec.projection_dim
        words: dict[str, int] = {}
        numbers = np.array([words.setdefault(w, len(words)) for sentence in sentences for w in (BOS, *sentence, EOS)])
        vectors = self._tokens.vectors(list(words))
        lengths = [len(sentence) + 2 for sentence in sentences]
        layers = np.empty((spec.n_layers + 1, len(numbers) + 1, spec.width), np.float32)  # the last: of idle slots
        layers[0, :-1] = np.tile(vectors, spec.directions)[numbers]
        states = self._start
        for piece in pieces(lengths, self._batch_tokens):
            rows = piece.tokens.shape[1]
            if states[0].shape[2] != rows:
                states = tuple(tf.repeat(part, rows, 2) if part.shape[2] == 1 else part[:, :, :rows] for part in states)
            tokens = piece.tokens.transpose(0, 2, 1)[:, : spec.directions]
            read, places = np.unique(numbers[np.minimum(tokens, len(numbers) - 1)], return_inverse=True)
            places = places.reshape(tokens.shape).astype(np.int32)
            outputs, states = self._inference.layers(vectors[read], places, states, piece.restarts, self._start)
            outputs = outputs.numpy()
            for direction in range(spec.directions):
                half = slice(direction * p, (direction + 1) * p)
                layers[1:, tokens[:, direction], half] = outputs[:, :, direction]
        if self.state == "stateful":
            self._start = states
        end = 0
        for length in lengths:
            begin, end = end, end + length
            # A copy, so that whoever keeps one sentence does not keep all.
            yield layers[:, begin:end].copy() if marks else layers[:, begin + 1 : end - 1].copy()
