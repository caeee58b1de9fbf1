"""Sentences to the layers of a biLM, streaming."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from toolkit.bilm.backend import tf
from toolkit.bilm.folder import Model
from toolkit.bilm.inference import Inference
from toolkit.bilm.model import States
from toolkit.embed.states import StateMode, warm_state
from toolkit.embed.tokens import TokenTable
from toolkit.errors import UsageError, did_you_mean
from toolkit.text.vocab import BOS, EOS

WINDOW_BYTES = 256 << 20  # of results that wait for their turn
WINDOW_BATCHES = 8
ROWS = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256)  # sentences of a batch: few sizes, since each is compiled

Compute = Literal["float32", "bfloat16"]


class Encoder:
    """Encodes sentences with one model.

    In the states "warm" (see `states.warm_state`) and "zero" each sentence starts from one fixed state: its vectors
    depend on the sentence alone, not on batch, order or process (up to rounding, about 1e-6). "stateful" is bilm-tf
    fed one sentence at a time: all sentences that this object ever encodes are one stream, in order, from zero; the
    state behind each is the start of the next, and an empty sentence takes part as its two marks.

    The backward LSTM reads each sentence reversed over its own length, `</S>` first. Padding never reaches a result.

    Args:
        model: from `toolkit.bilm.folder.load_model`.
        state: "warm", "zero" or "stateful".
        batch_tokens: padded tokens encoded at a time, marks included; a longer sentence is encoded in pieces, whose
            states are carried from one to the next.
        compute: dtype of the matrix products; vectors are float32 with both. bfloat16 is faster where the hardware has
            it, at a relative error of about 1e-2.

    Attributes:
        window_tokens: sentences are read ahead, sorted and batched until they hold this many tokens, marks included.

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
                yield _cut(self._encode_next(sentence), marks)
            return
        for window in self._windows(sentences):
            results: list[np.ndarray | None] = [None] * len(window)
            for batch in self._batches(window):
                starts = tuple(tf.repeat(part, _fill(len(batch)), axis=2) for part in self._start)
                layers, _ = self._run([window[i] for i in batch], starts)
                for index, one in zip(batch, layers, strict=True):
                    results[index] = _cut(one, marks)
            yield from results

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

    def _batches(self, window: list[Sequence[str]]) -> Iterator[list[int]]:
        """Indices of sentences that go together, of like lengths, the longest first."""
        order = sorted(range(len(window)), key=lambda i: -len(window[i]))
        while order:
            fitting = self._batch_tokens // (len(window[order[0]]) + 2)
            size = max(size for size in ROWS if size <= max(1, fitting))
            yield order[:size]
            order = order[size:]

    def _encode_next(self, sentence: Sequence[str]) -> np.ndarray:
        (layers,), self._start = self._run([sentence], self._start)
        return layers

    def _run(self, sentences: list[Sequence[str]], states: States) -> tuple[list[np.ndarray], States]:
        """Encode sentences side by side; the states have a row for each, and perhaps more rows to fill the batch."""
        spec, rows = self.model.spec, states[0].shape[2]
        vectors = self._tokens.vectors([word for sentence in sentences for word in (BOS, *sentence, EOS)])
        lengths = np.array([len(sentence) + 2 for sentence in sentences])
        first = np.cumsum(lengths) - lengths
        steps = np.arange(lengths.max())[:, None]
        directions = [first + np.minimum(steps, lengths - 1), first + np.maximum(lengths - 1 - steps, 0)]
        places = np.stack(directions[: spec.directions], 1).astype(np.int32)  # [T, R, B]
        places = np.pad(places, [(0, 0), (0, 0), (0, rows - len(sentences))])
        x, parts = tf.constant(vectors), []
        piece = max(1, self._batch_tokens // rows)
        for start in range(0, len(places), piece):
            layers, states = self._inference.layers(x, tf.constant(places[start : start + piece]), states)
            parts.append(layers.numpy())
        layers = np.concatenate(parts, 1) if len(parts) > 1 else parts[0]  # [L, T, R, B, P]
        results = []
        for row, (begin, length) in enumerate(zip(first, lengths, strict=True)):
            halves = [layers[:, :length, 0, row], layers[:, :length, -1, row][:, ::-1]][: spec.directions]
            bottom = np.concatenate([vectors[begin : begin + length]] * spec.directions, -1)[None]
            results.append(np.concatenate([bottom, np.concatenate(halves, -1)]))
        return results, states


def _fill(sentences: int) -> int:
    """Rows of the batch that holds so many sentences."""
    return next(rows for rows in ROWS if rows >= sentences)


def _cut(layers: np.ndarray, marks: bool) -> np.ndarray:
    return layers if marks else layers[:, 1:-1]
