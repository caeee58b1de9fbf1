"""The likelihood of text under a biLM and its full softmax: what `toolkit score` does (Peters et al. 2018, eq. 1)."""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.bilm.backend import tf
from toolkit.bilm.folder import Model, Softmax
from toolkit.bilm.softmax import full_softmax_nll
from toolkit.embed.encoder import Encoder
from toolkit.embed.reading import check_text, tokenised_lines
from toolkit.embed.states import StateMode
from toolkit.errors import DataError, FormatError
from toolkit.progress import Progress
from toolkit.text.vocab import BOS, EOS, UNK

LARGEST_NLL = 700.0  # nats a token whose exponential is still a finite number
LOGITS_BYTES = 64 << 20


@dataclass(frozen=True)
class Score:
    """One sentence's negative log-likelihoods, in nats.

    Attributes:
        tokens: n, without the marks.
        unknown: how many of them the vocabulary lacks; they count as `<UNK>`.
        forward: of w_1 … w_n, `</S>`: n + 1 targets.
        backward: of w_n … w_1, `<S>`: n + 1 targets; None for a forward model.
    """

    tokens: int
    unknown: int
    forward: float
    backward: float | None

    @property
    def targets(self) -> int:
        """Targets a direction; a blank line has none."""
        return self.tokens + 1 if self.tokens else 0

    @property
    def mean(self) -> float | None:
        """Negative log-likelihood a target, averaged over the directions; None for a blank line."""
        return _mean(self.forward, self.backward, self.targets) if self.tokens else None


class Scorer:
    """Scores sentences with one model; see `Encoder` for the states that they start from.

    Args:
        model: with a vocabulary and a softmax.
        state: "warm", "zero" or "stateful".
        batch_tokens: tokens encoded at a time.
        softmax: an output layer of the model's vocabulary; None reads the model's own.

    Raises:
        UsageError: the model has no softmax, as published weights have none, or the state is unknown.
        FormatError: the softmax is damaged.
    """

    def __init__(
        self, model: Model, state: StateMode = "warm", batch_tokens: int = 8192, softmax: Softmax | None = None
    ) -> None:
        softmax = softmax or model.softmax()
        self._vocabulary, self._p = model.vocabulary, model.spec.projection_dim
        self._weight, self._bias = tf.constant(softmax.weight), tf.constant(softmax.bias)
        self._encoder = Encoder(model, state, batch_tokens)
        self._rows = max(1, LOGITS_BYTES // (4 * len(model.vocabulary)))
        self._bidirectional = model.spec.bidirectional
        self._blank = Score(0, 0, 0.0, 0.0 if self._bidirectional else None)

    def scores(self, sentences: Iterable[Sequence[str]]) -> Iterator[Score]:
        """Yield a score for each sentence, in input order; a sentence without tokens gets zeros."""
        waiting: deque[Sequence[str]] = deque()

        def with_tokens() -> Iterator[Sequence[str]]:
            for sentence in sentences:
                waiting.append(sentence)
                if sentence:
                    yield sentence

        for layers in self._encoder.encode(with_tokens(), marks=True):
            while not waiting[0]:
                waiting.popleft()
                yield self._blank
            yield self._score(waiting.popleft(), layers[-1])
        yield from (self._blank for _ in waiting)

    def _score(self, tokens: Sequence[str], top: np.ndarray) -> Score:
        ids = np.array([self._vocabulary.id(word) for word in (BOS, *tokens, EOS)], np.int32)
        unknown = int((ids[1:-1] == self._vocabulary.ids[UNK]).sum())
        # The forward half stands before a token when it predicts it, the backward half behind it.
        forward = self._nll(top[:-1, : self._p], ids[1:])
        backward = self._nll(top[1:, self._p :], ids[:-1]) if self._bidirectional else None
        return Score(len(tokens), unknown, forward, backward)

    def _nll(self, hidden: np.ndarray, targets: np.ndarray) -> float:
        total = 0.0
        for start in range(0, len(targets), self._rows):
            part = slice(start, start + self._rows)
            nll = full_softmax_nll(tf.constant(hidden[part]), self._weight, self._bias, tf.constant(targets[part]))
            total += float(nll.numpy().sum(dtype=np.float64))
        return total


def score(
    model: Model, file: Path, state: StateMode = "warm", batch_tokens: int = 8192, softmax: Softmax | None = None
) -> dict[str, Any]:
    """Score a tokenised text, a sentence a line.

    Args:
        model: with a vocabulary and a softmax.
        file: UTF-8 text, plain, .gz, .bz2 or .xz; a blank line gets a row of its own and counts nothing.
        state: see `Encoder`.
        batch_tokens: see `Encoder`.
        softmax: see `Scorer`.

    Returns:
        the JSON document. `sentences`: tokens, unknown, forward_nll, backward_nll, mean_nll (a target, null for a blank
        line), in nats. Sums over them: tokens, unknown, targets (a direction: every token and the closing mark),
        forward_nll, backward_nll. From these: perplexity of both directions, perplexity_forward, perplexity_backward.
        A forward model has null for every figure of the backward direction, and means over one direction. Also
        model_fingerprint and state.

    Raises:
        UsageError: `file` is missing, or the model has no softmax.
        DataError: `file` is not UTF-8, damaged, or holds no token.
    """
    check_text(file)
    scorer = Scorer(model, state, batch_tokens, softmax)
    with Progress("scoring", file.stat().st_size, "B") as progress:
        found = list(scorer.scores(tokenised_lines(file, progress)))
    targets = sum(s.targets for s in found)
    if not targets:
        raise DataError(f"{file} holds no token: it should hold one tokenised sentence a line")
    forward = math.fsum(s.forward for s in found)
    backward = math.fsum(s.backward for s in found) if model.spec.bidirectional else None
    worst = max(forward, backward or 0.0) / targets
    if not worst < LARGEST_NLL:  # not-a-number, too
        raise FormatError(
            f"{worst:,.1f} nats a token on {file} are no finite perplexity: the weights of model {model.fingerprint} "
            f"are unusable, train it with a lower learning rate"
        )
    rows = [
        {
            "tokens": s.tokens,
            "unknown": s.unknown,
            "forward_nll": s.forward,
            "backward_nll": s.backward,
            "mean_nll": s.mean,
        }
        for s in found
    ]
    return {
        "sentences": rows,
        "tokens": sum(s.tokens for s in found),
        "unknown": sum(s.unknown for s in found),
        "targets": targets,
        "forward_nll": forward,
        "backward_nll": backward,
        "perplexity": math.exp(_mean(forward, backward, targets)),
        "perplexity_forward": math.exp(forward / targets),
        "perplexity_backward": None if backward is None else math.exp(backward / targets),
        "model_fingerprint": model.fingerprint,
        "state": state,
    }


def _mean(forward: float, backward: float | None, targets: int) -> float:
    """Negative log-likelihoods of n targets a direction, averaged over the targets of all directions."""
    return forward / targets if backward is None else (forward + backward) / (2 * targets)
