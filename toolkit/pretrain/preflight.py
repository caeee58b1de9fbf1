"""What a run will ask for, said before its first step: memory, time, and how much of the text the vocabulary covers."""

import statistics
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.config import Pretrain
from toolkit.memory import memory_available, memory_in_use
from toolkit.pretrain.batches import Batches, Lexicon
from toolkit.pretrain.graph import TrainingGraph
from toolkit.pretrain.perplexity import ROWS, Validation
from toolkit.pretrain.variables import named
from toolkit.runs.describe import duration_text
from toolkit.text.prepare import Prepared
from toolkit.text.vocab import UNK, Vocabulary

# Bytes that tracing and compiling the step take, measured (TensorFlow 2.21, CPU); it hardly depends on sizes.
COMPILED = 260 * 2**20
FLOAT = 4
# What to lower where a part of the memory is the largest.
LOWER = {
    "weights": "model.dim or vocabulary.size",
    "optimizer slots": "model.dim or vocabulary.size",
    "averages": "model.dim or vocabulary.size",
    "gradients": "model.dim or vocabulary.size",
    "activations": "pretrain.batch_size or pretrain.unroll_steps",
    "softmax logits": "pretrain.negatives or pretrain.batch_size",
    "process": "the corpus's number of distinct words",
}


@dataclass(frozen=True)
class Preflight:
    """The estimate before the first step.

    Attributes:
        memory: bytes by part, at the peak; "process" is what Python, TensorFlow, the corpus's words and the compiled
            step take.
        available: bytes that the machine gives, what the process holds already included; None where unknown.
        outside_train, outside_valid: share of the targets outside the vocabulary, closing marks counted.
        cut_types, cut_tokens: share of the distinct words and of the tokens that are cut at the character cap; None
            where words are the input.
        cap: the character cap in UTF-8 bytes; None where words are the input.
    """

    memory: dict[str, int]
    available: int | None
    outside_train: float
    outside_valid: float
    cut_types: float | None
    cut_tokens: float | None
    cap: int | None

    @property
    def total(self) -> int:
        """Bytes in all."""
        return sum(self.memory.values())

    def lines(self) -> list[str]:
        """Return the two lines of the log."""
        parts = ", ".join(f"{part} {_megabytes(size)}" for part, size in self.memory.items())
        memory = f"estimated peak memory {_megabytes(self.total)}: {parts}"
        if self.available is not None:
            memory += f"; available {_megabytes(self.available)}"
        words = (
            f"vocabulary coverage: {self.outside_train:.2%} of the training targets and {self.outside_valid:.2%} of "
            f"the validation targets are {UNK}"
        )
        if self.cut_types is not None:
            words += f"; cut at {self.cap} bytes: {self.cut_types:.2%} of word types, {self.cut_tokens:.3%} of tokens"
        return [memory, words]

    def warning(self) -> str | None:
        """Return the line to warn with where the memory does not suffice."""
        if self.available is None or self.total <= self.available:
            return None
        largest = max(self.memory, key=self.memory.__getitem__)
        return (
            f"training needs about {_megabytes(self.total)}, {_megabytes(self.available)} are available: lower "
            f"{LOWER[largest]} (the largest part is {largest}, {_megabytes(self.memory[largest])})"
        )

    def document(self) -> dict[str, Any]:
        """Return the estimate as JSON, sizes in bytes."""
        return {**vars(self), "estimated": self.total}


def plan(prepared: Prepared, settings: Pretrain, batches: Batches, steps: int) -> str:
    """Return the line that says how many steps and epochs the real number of tokens makes."""
    stream, epochs = prepared.train, steps / batches.steps_per_epoch
    line = (
        f"{stream.n_tokens:,} tokens in {stream.n_sentences:,} sentences = {batches.steps_per_epoch:,} steps an epoch "
        f"({batches.batch_size} rows of {settings.unroll_steps}); {steps:,} steps = {epochs:,.3g} epochs"
    )
    if settings.minutes:
        line += f", at most {settings.minutes:g} minutes"
    if settings.patience:
        line += f", fewer after {settings.patience} validations without a better one"
    return line


def check(
    graph: TrainingGraph,
    batches: Batches,
    prepared: Prepared,
    lexicon: Lexicon,
    vocabulary: Vocabulary,
    validation: Validation,
) -> Preflight:
    """Estimate what a training run takes; the graph's variables exist, its step is not traced yet."""
    unknown, counts = vocabulary.id(UNK), prepared.counts
    outside = lexicon.targets[: len(counts)] == unknown
    available, held = memory_available(), memory_in_use()
    spec = graph.bilm.spec
    cap = spec.max_characters - 2
    cut = np.array([False]) if spec.reads_words else _longer_than(prepared.words, cap)
    tokens = max(1, counts.sum())
    return Preflight(
        memory=_memory(graph, batches, held),
        available=None if available is None else available + held,
        outside_train=float(counts[outside].sum() / (tokens + prepared.train.n_sentences)),
        outside_valid=float((validation.targets() == unknown).mean()),
        cut_types=None if spec.reads_words else float(cut.mean()),
        cut_tokens=None if spec.reads_words else float(counts[cut].sum() / tokens),
        cap=None if spec.reads_words else cap,
    )


def _longer_than(words: list[str], cap: int) -> np.ndarray:
    return np.fromiter((len(word.encode("utf-8", "ignore")) > cap for word in words), bool, len(words))


def _memory(graph: TrainingGraph, batches: Batches, held: int) -> dict[str, int]:
    """Bytes by part; the distinct words of a step are taken from the first batch."""
    spec, settings, narrow = graph.bilm.spec, graph.settings, graph.dtype.size
    batch = batches.shares(0)[0]
    variables = [variable.shape.num_elements() for _, variable in named(graph)]
    dense = sum(variable.shape.num_elements() for variable in graph.dense)
    weights = FLOAT * sum(variables)
    directions, rows = spec.directions, len(batch.rows)
    tokens = directions * settings.batch_size * settings.unroll_steps
    p, d, candidates = spec.projection_dim, spec.dim, batch.sampled.shape[1]

    # Each gradient stands beside its clipped copy, and low-precision products read copies of the weights.
    gradients = 2 * FLOAT * (dense + 2 * rows * (p + 1)) + (narrow * dense if narrow < FLOAT else 0)
    # A layer keeps inputs, gates, outputs and its cells (float32); the way back adds the gates' gradients, twice.
    layer = tokens * (narrow * (3 * p + 5 * d) + FLOAT * d)
    back = tokens * narrow * (5 * p + 9 * d)
    # Logits and their gradient (of narrow ones a float32 copy inside the fused pass, as measured); the softmax's rows
    # gathered for them, and the gradients of those.
    wide = FLOAT if narrow < FLOAT else 0
    logits = (2 * narrow + wide) * tokens * candidates + (narrow + 2 * FLOAT) * (directions * candidates + tokens) * p
    logits = max(logits, 2 * FLOAT * ROWS * settings.unroll_steps * graph.softmax_bias.shape[0])  # of a validation
    convolved, highways, group = _characters(graph, batch.groups)
    # The logits are gone when the layers are walked back, and those when the convolutions are.
    activations = spec.n_layers * layer + convolved + highways + max(0, back - logits, group - logits)
    slots = weights * len(graph.optimizer.slots)
    averages = weights if graph.averages.values else 0
    return {
        "weights": weights,
        "optimizer slots": slots,
        "averages": averages,
        "gradients": gradients,
        "activations": activations,
        "softmax logits": logits,
        "process": max(0, held - weights - slots - averages) + COMPILED,
    }


def _characters(graph: TrainingGraph, groups: tuple[np.ndarray, ...]) -> tuple[int, int, int]:
    """Bytes that the token layer keeps over a batch's distinct words.

    Returns:
        of all convolutions before their maximum with the windows they read, of the highways, and of the convolutions of
        the largest length group.
    """
    spec, narrow = graph.bilm.spec, graph.dtype.size
    if spec.reads_words:
        return 0, 0, 0
    positions = [ids.shape[0] * (ids.shape[1] - spec.widest_filter + 1) for ids in groups]
    position = narrow * (spec.widest_filter * spec.char_dim + spec.n_filters)
    highways = sum(map(len, groups)) * spec.n_filters * (spec.n_highway * 3 * (narrow + FLOAT) + 2 * FLOAT)
    return sum(positions) * position, highways, max(positions) * position


class Pace:
    """The time of the first steps, from which the whole run's is estimated, once.

    Args:
        tokens_per_step: targets a direction that a step reads.
    """

    SKIPPED = 3  # steps that trace and compile
    MEASURED = 10

    def __init__(self, tokens_per_step: int) -> None:
        self.tokens_per_step = tokens_per_step
        self._seconds: list[float] = []

    def line(self, seconds: float, steps_left: int, seconds_left: float) -> str | None:
        """Return the estimate once enough steps have been timed, None at every other step.

        Args:
            seconds: that this step took.
            steps_left: behind it.
            seconds_left: of the minutes that the run may take; infinite without such a limit.
        """
        if len(self._seconds) == self.SKIPPED + self.MEASURED:
            return None
        self._seconds.append(seconds)
        if len(self._seconds) < self.SKIPPED + self.MEASURED or not steps_left:
            return None
        step = statistics.median(self._seconds[self.SKIPPED :])
        left = min(steps_left * step, seconds_left)
        return (
            f"estimated time left {duration_text(left)} for {min(steps_left, left / step):,.0f} steps of {step:.3g} s "
            f"({self.tokens_per_step / step:,.0f} tokens/s), validations not counted"
        )


def _megabytes(size: int) -> str:
    return f"{size / 2**20:,.0f} MiB"
