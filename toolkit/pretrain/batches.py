"""What a training step reads, as a pure function of the seed and the step's number: nothing to save but a number.

Letter for shapes: R directions, 2, or 1 of a forward model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from toolkit.bilm.char_cnn_groups import group_of, group_widths
from toolkit.bilm.softmax import log_uniform_sample
from toolkit.bilm.spec import BiLMSpec
from toolkit.config import Pretrain
from toolkit.errors import DataError
from toolkit.text.chars import PADDING, char_rows
from toolkit.text.prepare import TokenStream
from toolkit.text.vocab import BOS, EOS, Vocabulary

GROUP_MULTIPLE = 32
FIXED_MULTIPLE = 512


@dataclass(frozen=True)
class Lexicon:
    """The distinct words of a corpus with the two sentence marks behind them, ready to be looked up by number.

    Attributes:
        rows: int16 [n + 2, C], character ids; C is 0 for a model that reads words.
        lengths: int16 [n + 2], ids before the padding.
        targets: int32 [n + 2], ids in the softmax's vocabulary.
    """

    rows: np.ndarray
    lengths: np.ndarray
    targets: np.ndarray

    @classmethod
    def build(cls, words: Sequence[str], vocabulary: Vocabulary, max_characters: int) -> "Lexicon":
        """Look up all words of a prepared corpus."""
        words = [*words, BOS, EOS]
        rows = np.empty((len(words), max_characters), np.int16)
        for start in range(0, len(words) if max_characters else 0, 10_000):
            rows[start : start + 10_000] = char_rows(words[start : start + 10_000], max_characters)
        targets = np.fromiter((vocabulary.id(word) for word in words), np.int32, len(words))
        return cls(rows, (rows != PADDING).sum(1).astype(np.int16), targets)


class MarkedText:
    """A token stream in some order of its sentences, read in one direction, as inputs and the words that follow them.

    A sentence of n tokens gives n + 1 positions: inputs begin with the mark, targets end with the other mark.

    Args:
        stream: the corpus.
        order: which sentence comes when.
        backward: sentences are read from their end, and begin with `</S>`.
        begin, end: the numbers of the marks that open and close a sentence in this direction.
    """

    def __init__(self, stream: TokenStream, order: np.ndarray, backward: bool, begin: int, end: int) -> None:
        self.stream, self.order, self.backward, self.begin, self.end = stream, order, backward, begin, end
        lengths = np.diff(stream.starts)[order]
        self.ends = np.cumsum(lengths + 1)

    def __len__(self) -> int:
        return int(self.ends[-1])

    def read(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return inputs and targets, as numbers of words, at any positions (same shape)."""
        rank = np.searchsorted(self.ends, positions, side="right")
        sentence = self.order[rank]
        start = self.stream.starts[sentence]
        length = self.stream.starts[sentence + 1] - start
        offset = positions - (self.ends[rank] - length - 1)
        if self.backward:
            before, after = start + length - offset, start + length - 1 - offset
        else:
            before, after = start + offset - 1, start + offset
        tokens = self.stream.tokens
        inputs = np.where(offset == 0, self.begin, tokens[np.clip(before, 0, len(tokens) - 1)])
        targets = np.where(offset == length, self.end, tokens[np.clip(after, 0, len(tokens) - 1)])
        return inputs, targets


def marked_texts(stream: TokenStream, order: np.ndarray, lexicon: Lexicon, directions: int) -> list[MarkedText]:
    """Return a text as each direction reads it, forward first."""
    bos, eos = len(lexicon.targets) - 2, len(lexicon.targets) - 1
    texts = MarkedText(stream, order, False, bos, eos), MarkedText(stream, order, True, eos, bos)
    return list(texts[:directions])


@dataclass(frozen=True)
class Batch:
    """One step's input; arrays as the training graph takes them.

    Attributes:
        groups: int32 [U_g, C_g] each, character ids of the distinct words, by length; of a model that reads words one
            group, int32 [U], the distinct rows of its table.
        inputs: int32 [T, R, B], places in the concatenated groups.
        rows: int32 [N], the rows of the softmax that this step touches.
        targets: int32 [R, T·B], places in `rows`.
        sampled: int32 [R, S], places in `rows`.
        log_expected: float32 [R, N].
        kept: bool [L + 1, T, R, B, P], false where dropout sets a zero; [0, …] without dropout.
    """

    groups: tuple[np.ndarray, ...]
    inputs: np.ndarray
    rows: np.ndarray
    targets: np.ndarray
    sampled: np.ndarray
    log_expected: np.ndarray
    kept: np.ndarray


def unique_words(lexicon: Lexicon, tokens: np.ndarray, spec: BiLMSpec) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Group the distinct words of a batch by length.

    Returns:
        the groups' character ids, each filled up to a multiple of `GROUP_MULTIPLE` words so that few shapes occur, and
        each token's place in the concatenated groups (the shape of `tokens`). A model that reads words has one group,
        the distinct rows of its table: all words outside the vocabulary are the row of `<UNK>`.
    """
    if spec.reads_words:
        rows, inverse = np.unique(lexicon.targets[tokens], return_inverse=True)
        return (rows.astype(np.int32),), inverse.astype(np.int32).reshape(tokens.shape)
    widths = group_widths(spec)
    words, inverse = np.unique(tokens, return_inverse=True)
    group = group_of(lexicon.lengths[words], spec)
    place, groups, start = np.empty(len(words), np.int32), [], 0
    for number, width in enumerate(widths):
        members = np.flatnonzero(group == number)
        size = -(-len(members) // GROUP_MULTIPLE) * GROUP_MULTIPLE
        ids = np.full((size, width), PADDING, np.int32)
        ids[: len(members)] = lexicon.rows[words[members], :width]
        place[members] = start + np.arange(len(members))
        groups.append(ids)
        start += size
    return tuple(groups), place[inverse].reshape(tokens.shape)


def fixed_shapes(batch: Batch, spec: BiLMSpec) -> Batch:
    """Return a batch in few different shapes, for a step that XLA compiles whole (and again for every new shape).

    All words form one group of full length. Words and softmax rows are filled up to multiples of `FIXED_MULTIPLE`: with
    padding and with row 0, which nothing refers to.
    """
    if spec.reads_words:
        groups = (_filled(batch.groups[0], 0, 0),)
    else:
        wide = [
            np.pad(group, ((0, 0), (0, spec.max_characters - group.shape[1])), constant_values=PADDING)
            for group in batch.groups
        ]
        groups = (_filled(np.concatenate(wide), 0, PADDING),)
    rows, log_expected = _filled(batch.rows, 0, 0), _filled(batch.log_expected, 1, 0)
    return replace(batch, groups=groups, rows=rows, log_expected=log_expected)


def _filled(values: np.ndarray, axis: int, value: int) -> np.ndarray:
    missing = -values.shape[axis] % FIXED_MULTIPLE
    widths = [(0, missing if axis == i else 0) for i in range(values.ndim)]
    return np.pad(values, widths, constant_values=value)


class Batches:
    """The training batches of a corpus, each computed from (seed, step) alone.

    An epoch is the text with its sentences shuffled, cut into B rows that are read side by side. All directions read
    the sentences in one order (bilm-tf shuffles each for itself): a batch then holds a sixth fewer distinct words, and
    the token layer, the largest part of a step, runs once a distinct word.

    Args:
        stream: the training text.
        lexicon: its words.
        vocabulary_size: V.
        spec: the shape of the biLM.
        settings: batch size (of a replica), unroll steps, negatives, dropout and seed.
        count: replicas that train together; B is the joined batch's, `count` times the batch size.
        members: which of them `shares` is for.

    Raises:
        DataError: the text does not fill one step.
    """

    def __init__(
        self,
        stream: TokenStream,
        lexicon: Lexicon,
        vocabulary_size: int,
        spec: BiLMSpec,
        settings: Pretrain,
        count: int = 1,
        members: range = range(1),
    ) -> None:
        self.stream, self.lexicon, self.vocabulary_size, self.spec = stream, lexicon, vocabulary_size, spec
        self.batch_size = batch_size = count * settings.batch_size
        self._slices = [slice(i * settings.batch_size, (i + 1) * settings.batch_size) for i in members]
        self.unroll_steps = unroll_steps = settings.unroll_steps
        self.negatives, self.dropout, self.seed = settings.negatives, settings.dropout, settings.seed
        self.row_length = (stream.n_tokens + stream.n_sentences) // batch_size
        self.steps_per_epoch = self.row_length // unroll_steps
        if self.steps_per_epoch == 0:
            rows = (stream.n_tokens + stream.n_sentences) // unroll_steps
            raise DataError(
                f"the text holds {stream.n_tokens + stream.n_sentences} tokens, one step reads {batch_size} rows of "
                f"{unroll_steps}: add text, or --set pretrain.batch_size={max(1, rows // (4 * count))}"
            )
        self._epoch: tuple[int, list[MarkedText]] = (-1, [])

    def __getitem__(self, step: int) -> Batch:
        """Return the whole batch of a step, counted from 0 over all epochs."""
        return self._made(step, [slice(0, self.batch_size)])[0]

    def shares(self, step: int) -> tuple[Batch, ...]:
        """Return what each of the members reads of a step's batch: its rows, and the softmax rows of all."""
        return self._made(step, self._slices)

    def _made(self, step: int, slices: list[slice]) -> tuple[Batch, ...]:
        epoch, within = divmod(step, self.steps_per_epoch)
        columns = within * self.unroll_steps + np.arange(self.unroll_steps)
        positions = columns[:, None] + self.row_length * np.arange(self.batch_size)
        read = [text.read(positions) for text in self._texts(epoch)]
        inputs, targets = (np.stack([direction[i] for direction in read]) for i in range(2))
        # The position of a row is [T, R, B] for the inputs and [R, T·B] for the targets.
        directions = len(targets)
        targets = self.lexicon.targets[targets]
        draws = [
            log_uniform_sample(
                self.vocabulary_size, self.negatives, np.random.default_rng((self.seed, step, direction))
            )
            for direction in range(directions)
        ]
        rows, flat = np.unique(np.concatenate([targets.ravel(), *(words for words, _ in draws)]), return_inverse=True)
        flat = flat.astype(np.int32)
        targets, sampled = flat[: targets.size].reshape(targets.shape), flat[targets.size :].reshape(directions, -1)
        rows = rows.astype(np.int32)
        log_expected = np.stack([expected[rows] for _, expected in draws])
        # The rows of a word table are those of all members, like the softmax's: their gradients are averaged.
        joined = unique_words(self.lexicon, inputs, self.spec) if self.spec.reads_words else None
        batches = []
        for part in slices:
            groups, places = joined or unique_words(self.lexicon, inputs[..., part], self.spec)
            batches.append(
                Batch(
                    groups=groups,
                    inputs=(places[..., part] if joined else places).transpose(1, 0, 2),
                    rows=rows,
                    targets=targets[..., part].reshape(directions, -1),
                    sampled=sampled,
                    log_expected=log_expected,
                    kept=self._kept(step, part),
                )
            )
        return tuple(batches)

    def _kept(self, step: int, part: slice) -> np.ndarray:
        """Dropout masks of some rows; drawn here, beside the running step, since that is slow inside the graph."""
        spec = self.spec
        size, width = part.stop - part.start, spec.projection_dim
        shape = (spec.n_layers + 1, self.unroll_steps, spec.directions, size, width)
        if self.dropout == 0:
            return np.empty((0, *shape[1:]), bool)
        blocks = int(np.prod(shape[:3]))
        if size == self.batch_size:
            bits = _random_bits((self.seed, step, 2), 0, blocks * size * width)
        else:
            starts = (block * self.batch_size + part.start for block in range(blocks))
            bits = np.stack([_random_bits((self.seed, step, 2), start * width, size * width) for start in starts])
        return (bits >= round(self.dropout * 2**16)).reshape(shape)

    def _texts(self, epoch: int) -> list[MarkedText]:
        """The directions of an epoch; only the latest epoch is kept."""
        if self._epoch[0] != epoch:
            order = np.random.default_rng((self.seed, epoch)).permutation(self.stream.n_sentences)
            self._epoch = (epoch, marked_texts(self.stream, order, self.lexicon, self.spec.directions))
        return self._epoch[1]


def _random_bits(seed: tuple[int, ...], start: int, count: int) -> np.ndarray:
    """Return uint16 [count] from a place on in one long row of random numbers, without drawing those before it."""
    first = start // 4  # four of them are one draw of the generator
    generator = np.random.PCG64(seed)
    generator.advance(first)
    drawn = generator.random_raw(-(-(start + count) // 4) - first).view(np.uint16)
    return drawn[start - 4 * first :][:count]
