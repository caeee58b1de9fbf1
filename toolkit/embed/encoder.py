"""Sentences to the layers of a biLM, streaming."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import get_args

import numpy as np

from toolkit.bilm.backend import tf
from toolkit.bilm.folder import Model
from toolkit.embed.states import StateMode, warm_state
from toolkit.embed.tokens import TokenTable
from toolkit.errors import UsageError, did_you_mean
from toolkit.text.vocab import BOS, EOS

WINDOW_BYTES = 128 << 20  # of results that wait for their turn
WINDOW_BATCHES = 8


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
        batch_tokens: padded tokens encoded at a time, marks included; a longer sentence makes a batch of its own.

    Attributes:
        window_tokens: sentences are read ahead, sorted and batched until they hold this many tokens, marks included.

    Raises:
        UsageError: the state is unknown, or the model lacks a vocabulary that it needs.
    """

    def __init__(self, model: Model, state: StateMode = "warm", batch_tokens: int = 4096) -> None:
        if state not in get_args(StateMode):
            raise UsageError(f"unknown state {state!r}: {did_you_mean(state, get_args(StateMode))}")
        self.model, self.state = model, state
        self._bilm, self._tokens = model.bilm, TokenTable(model.bilm, model.vocabulary)
        self._start = warm_state(self._bilm, self._tokens) if state == "warm" else self._bilm.zero_state(1)
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
                for index, layers in zip(batch, self._encode_batch([window[i] for i in batch]), strict=True):
                    results[index] = _cut(layers, marks)
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
        """Indices of sentences that go together, of like lengths."""
        batch: list[int] = []
        for index in sorted(range(len(window)), key=lambda i: len(window[i])):
            if batch and (len(batch) + 1) * (len(window[index]) + 2) > self._batch_tokens:
                yield batch
                batch = []
            batch.append(index)
        if batch:
            yield batch

    def _encode_batch(self, sentences: list[Sequence[str]]) -> list[np.ndarray]:
        states = tuple(tf.repeat(part, len(sentences), axis=2) for part in self._start)
        layers, _ = self._run(sentences, states)
        return layers

    def _encode_next(self, sentence: Sequence[str]) -> np.ndarray:
        (layers,), self._start = self._run([sentence], self._start)
        return layers

    def _run(self, sentences: list[Sequence[str]], states: tuple) -> tuple[list[np.ndarray], tuple]:
        lengths = [len(sentence) + 2 for sentence in sentences]
        vectors = self._tokens.vectors([word for sentence in sentences for word in (BOS, *sentence, EOS)])
        x = np.zeros((len(sentences), max(lengths), self._bilm.spec.projection_dim), np.float32)
        x[np.arange(max(lengths)) < np.array(lengths)[:, None]] = vectors
        layers, states = self._bilm.run_layers(tf.constant(x), tf.constant(lengths), states)
        layers = layers.numpy()
        results = []
        for row, length in enumerate(lengths):
            tokens = x[row, :length]
            bottom = np.concatenate([tokens] * self._bilm.spec.directions, -1)[None]
            results.append(np.concatenate([bottom, layers[:, row, :length]]))
        return results, states


def _cut(layers: np.ndarray, marks: bool) -> np.ndarray:
    return layers if marks else layers[:, 1:-1]
