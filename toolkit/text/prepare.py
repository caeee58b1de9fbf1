"""A corpus tokenised once, in parallel processes, into a cache that training streams from."""

import functools
import hashlib
import itertools
import logging
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from toolkit import config
from toolkit.errors import DataError, FormatError, ToolkitError, UsageError
from toolkit.files import atomic_folder, fingerprint, read_json, sha256, write_json
from toolkit.progress import Progress
from toolkit.text import corpus
from toolkit.text.tokenize import InputKind, Tokenizer, detect_input, method

logger = logging.getLogger(__name__)

FORMAT = 1  # of the cache; raise it whenever the same text and settings would give another result
CHUNK = 1_000_000  # characters of text that one task of a worker holds
SAMPLE = 2_000  # lines of a file that tell raw from tokenised
# Bytes of a line that are held at a time. Some of the Moses rules take time that grows with the square of a sentence.
LINE_LIMIT: dict[InputKind, int] = {"raw": 1 << 16, "tokenised": 1 << 20}
REMAP = 4_000_000  # tokens renumbered at a time
SPLITS = ("train", "valid")


@dataclass(frozen=True)
class TokenStream:
    """The sentences of one split, one behind the other, mapped from disk.

    Attributes:
        tokens: int32 `[n_tokens]`, indices into `Prepared.words`; no sentence marks.
        starts: int64 `[n_sentences + 1]`; sentence i is `tokens[starts[i] : starts[i + 1]]`, never empty.
    """

    tokens: np.memmap
    starts: np.memmap

    @property
    def n_sentences(self) -> int:
        """Return the number of sentences."""
        return len(self.starts) - 1

    @property
    def n_tokens(self) -> int:
        """Return the number of tokens."""
        return len(self.tokens)


@dataclass(frozen=True)
class Prepared:
    """A tokenised corpus in the cache, whatever the vocabulary that is later chosen from it.

    Attributes:
        folder: where it lies.
        fingerprint: 16 hexadecimal digits of the files' contents, the settings and the cache's format.
        words: distinct words, the most frequent of train first (equal ones by first appearance); words that only
            valid holds stand last.
        counts: int64 `[len(words)]`, how often each stands in train.
        train: the training sentences.
        valid: the held-out sentences.
        description: the JSON record: files, settings, sizes, the kinds of input found, and `lowercase_share`, the
            share of the training tokens with a letter that hold no upper-case one.
    """

    folder: Path
    fingerprint: str
    words: list[str]
    counts: np.ndarray
    train: TokenStream
    valid: TokenStream
    description: dict[str, Any]


@dataclass(frozen=True)
class Source:
    """A file of the corpus, its split and how it is to be read."""

    path: Path
    split: str
    kind: InputKind
    sha256: str


@dataclass(frozen=True)
class Recipe:
    """What a worker needs to know about all chunks."""

    language: str
    lowercase: bool
    held_out: float  # share of the training files' paragraphs that go to valid


@dataclass(frozen=True)
class Chunk:
    """Lines of one file; `read` counts the bytes of the file on disk that went by since its last chunk."""

    source: int
    lines: list[str]
    read: int


@dataclass(frozen=True)
class Counted:
    """A tokenised chunk: its distinct words, and for each split the ids int32 and sentence lengths int64."""

    words: list[str]
    ids: dict[str, np.ndarray]
    lengths: dict[str, np.ndarray]


def prepare(
    patterns: Sequence[str | Path],
    valid_patterns: Sequence[str | Path] | None,
    settings: config.Text,
    valid_fraction: float,
    cache: Path,
) -> Prepared:
    """Tokenise a corpus, or open it where the cache holds it already.

    The result depends on the files' contents and the settings only, not on the number of processes. Memory holds the
    distinct words, a few chunks and one piece of a line. A raw line is a paragraph; one longer than 64 KiB (a
    tokenised one: 1 MiB) is cut at a blank.

    Args:
        patterns: files, folders and globs as in `corpus.resolve`. Files named valid… or dev… are the validation text,
            files named test… are left out.
        valid_patterns: the validation text instead; empty or None to go by the names.
        settings: the `[text]` table; with `input = "auto"` each file is judged by its own sample.
        valid_fraction: where there is no validation file, the share of the paragraphs (tokenised: sentences) held
            out, chosen by a hash of their text. In a corpus too small for that share it is doubled until one is.
        cache: the root of the caches, from `config.cache_folder`.

    Raises:
        UsageError: a pattern matches nothing, or the names leave nothing to train on.
        DataError: a file is not UTF-8 or damaged, or there are no tokens to train on or to hold out.
        ToolkitError: a worker process died.
    """
    sources = _sources(patterns, valid_patterns, settings)
    held_out = 0.0 if any(source.split == "valid" for source in sources) else valid_fraction
    key = {
        "format": FORMAT,
        "files": [(source.split, source.kind, source.sha256) for source in sources],
        "methods": {kind: method(settings.language, kind) for kind in sorted({source.kind for source in sources})},
        "settings": settings.model_dump(mode="json", exclude={"processes", "input"}),
        "valid_fraction": held_out,
    }
    folder = cache / "corpora" / fingerprint(key)
    if folder.is_dir():
        try:
            return _open(folder)
        except FormatError as error:
            logger.warning("the prepared corpus is made again: %s", error)
    while True:
        try:
            _build(folder, sources, Recipe(settings.language, settings.lowercase, held_out), settings.processes, key)
            return _open(folder)
        except _NothingHeldOut:
            if held_out >= 0.5:
                raise DataError(
                    f"{_names(sources)}: too few paragraphs to hold some out for validation; name a validation file"
                ) from None
            held_out = min(0.5, 2 * held_out)
            logger.info("no paragraph was held out for validation; trying a share of %g", held_out)


class _NothingHeldOut(Exception):
    """The hash put no paragraph aside, or all of them."""


def _sources(patterns: Sequence, valid_patterns: Sequence | None, settings: config.Text) -> list[Source]:
    roles = corpus.split_roles(corpus.resolve(patterns))
    valid = corpus.resolve(valid_patterns) if valid_patterns else roles.valid
    named = {file.resolve() for file in valid}
    train = [file for file in roles.train if file.resolve() not in named]
    if roles.test:
        logger.info("left out of training as test text: %s", ", ".join(map(str, roles.test)))
    if not train:
        others = ", ".join(str(file) for file in [*valid, *roles.test][:5])
        raise UsageError(f"nothing to train on: by name or option all files are validation or test text ({others})")
    files = [(file, "train") for file in train] + [(file, "valid") for file in valid]
    kinds = _kinds([file for file, _ in files], settings)
    return [Source(file, split, kind, sha256(file)) for (file, split), kind in zip(files, kinds, strict=True)]


def _kinds(files: Sequence[Path], settings: config.Text) -> list[InputKind]:
    if settings.input != "auto":
        return [settings.input] * len(files)
    found = []
    for file in files:
        lines = (line for line in corpus.lines(file, LINE_LIMIT["raw"]) if line.strip())
        found.append(detect_input(itertools.islice(lines, SAMPLE)))
    usual: InputKind = "tokenised" if found.count("tokenised") > found.count("raw") else "raw"
    kinds = [kind or usual for kind in found]  # a file without a comma or full stop is as the others are
    for kind in sorted(set(kinds)):
        logger.info("%d of %d files are %s text (text.input = auto)", kinds.count(kind), len(kinds), kind)
    return kinds


def _build(folder: Path, sources: list[Source], recipe: Recipe, processes: int, key: dict[str, Any]) -> None:
    """Tokenise into `folder`, whole or not at all."""
    total = sum(source.path.stat().st_size for source in sources)
    workers = processes or os.cpu_count() or 1
    if total <= CHUNK:
        workers = 1  # starting processes would take longer than the work
    with atomic_folder(folder) as temporary:
        with Progress("tokenising", total / 1e6, "MB") as progress, _Merger(temporary, len(sources)) as merger:
            start = time.monotonic()
            for chunk, counted in _tokenised(_chunks(sources), sources, recipe, workers):
                merger.add(chunk.source, counted)
                speed = merger.n_tokens / max(time.monotonic() - start, 1e-9)
                progress.advance(chunk.read / 1e6, f"{speed:,.0f} tokens/s")
        _check_not_empty(sources, merger)
        words, counts = merger.finish()
        _describe(temporary, sources, recipe, key, words, counts, merger)


def _chunks(sources: list[Source]) -> Iterator[Chunk]:
    for number, source in enumerate(sources):
        with corpus.opened(source.path) as (raw, stream):
            held: list[str] = []
            size = reported = 0
            for line in corpus.decoded(stream, source.path, LINE_LIMIT[source.kind]):
                held.append(line)
                size += len(line)
                if size >= CHUNK:
                    yield Chunk(number, held, raw.tell() - reported)
                    held, size, reported = [], 0, raw.tell()
            yield Chunk(number, held, raw.tell() - reported)


def _tokenised(
    chunks: Iterator[Chunk], sources: list[Source], recipe: Recipe, workers: int
) -> Iterator[tuple[Chunk, Counted]]:
    """Tokenise chunks in `workers` processes (1: in this one); the results come in the order of the chunks."""
    if workers == 1:
        for chunk in chunks:
            yield chunk, _count(chunk.lines, sources[chunk.source].split, sources[chunk.source].kind, recipe)
        return
    # Not fork: TensorFlow's threads may run in this process, and a forked child would inherit their locks.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker)
    waiting: deque[tuple[Chunk, Future[Counted]]] = deque()
    try:
        for chunk in chunks:
            source = sources[chunk.source]
            waiting.append((chunk, pool.submit(_count, chunk.lines, source.split, source.kind, recipe)))
            if len(waiting) > 2 * workers:
                first, future = waiting.popleft()
                yield first, future.result()
        while waiting:
            first, future = waiting.popleft()
            yield first, future.result()
    except BrokenProcessPool:
        raise ToolkitError(
            "a tokenising process ended abruptly, perhaps for want of memory; try --set text.processes=1"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _start_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent ends the workers
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Leave when the parent was killed: the queue of a worker never closes by itself."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


@functools.cache
def _tokenizer(language: str, lowercase: bool, kind: InputKind) -> Tokenizer:
    return Tokenizer(language, lowercase, kind)


def _count(lines: list[str], split: str, kind: InputKind, recipe: Recipe) -> Counted:
    """Tokenise lines and number their words from 0 by first appearance (runs in a worker)."""
    tokenizer = _tokenizer(recipe.language, recipe.lowercase, kind)
    number: dict[str, int] = {}
    ids: dict[str, list[int]] = {name: [] for name in SPLITS}
    lengths: dict[str, list[int]] = {name: [] for name in SPLITS}
    for line in lines:
        where = "valid" if split == "train" and _is_held_out(line, recipe.held_out) else split
        for tokens in tokenizer.sentences(line):
            ids[where] += [number.setdefault(token, len(number)) for token in tokens]
            lengths[where].append(len(tokens))
    return Counted(
        list(number),
        {name: np.array(values, np.int32) for name, values in ids.items()},
        {name: np.array(values, np.int64) for name, values in lengths.items()},
    )


def _is_held_out(line: str, share: float) -> bool:
    if share == 0:
        return False
    digest = hashlib.sha256(line.strip().encode("utf-8")).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64


class _Merger:
    """Joins tokenised chunks in their order; the files grow on disk, only the distinct words are held."""

    def __init__(self, folder: Path, n_sources: int) -> None:
        self.folder = folder
        self.n_tokens = 0
        self.tokens_of_source = [0] * n_sources
        self.sentences_of_source = [0] * n_sources
        self.size = dict.fromkeys(SPLITS, 0)
        self._number: dict[str, int] = {}
        self._counts = np.zeros(1 << 16, np.int64)  # room to grow
        self._stack = ExitStack()
        self._files: dict[str, tuple[BinaryIO, BinaryIO]] = {}

    def __enter__(self) -> "_Merger":
        for split in SPLITS:
            tokens, starts = (self._stack.enter_context(path.open("wb")) for path in _stream_files(self.folder, split))
            starts.write(np.zeros(1, "<i8").tobytes())
            self._files[split] = tokens, starts
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def add(self, source: int, counted: Counted) -> None:
        """Append a chunk's sentences."""
        number = self._number
        to_global = np.array([number.setdefault(word, len(number)) for word in counted.words], np.int32)
        if len(number) > len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros(len(number), np.int64)])
        for split in SPLITS:
            ids, lengths = counted.ids[split], counted.lengths[split]
            if not len(ids):
                continue
            tokens, starts = self._files[split]
            tokens.write(to_global[ids].astype("<i4").tobytes())
            starts.write((self.size[split] + np.cumsum(lengths)).astype("<i8").tobytes())
            self.size[split] += len(ids)
            self.n_tokens += len(ids)
            self.tokens_of_source[source] += len(ids)
            self.sentences_of_source[source] += len(lengths)
        self._counts[to_global] += np.bincount(counted.ids["train"], minlength=len(to_global))

    def finish(self) -> tuple[list[str], np.ndarray]:
        """Renumber the words by falling frequency and return them with their counts in train."""
        counts = self._counts[: len(self._number)]
        order = np.argsort(-counts, kind="stable")  # numbers go by first appearance, and so do equal counts
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        for split in SPLITS:
            tokens = np.memmap(_stream_files(self.folder, split)[0], "<i4", mode="r+")
            for begin in range(0, len(tokens), REMAP):
                tokens[begin : begin + REMAP] = rank[tokens[begin : begin + REMAP]]
            tokens.flush()
        words = list(self._number)
        return [words[i] for i in order], counts[order]


def _check_not_empty(sources: list[Source], merger: _Merger) -> None:
    for source, tokens in zip(sources, merger.tokens_of_source, strict=True):
        if not tokens:
            logger.warning("%s holds no tokens", source.path)
    for split in SPLITS:
        files = [source for source in sources if source.split == split]
        read = sum(n for s, n in zip(sources, merger.tokens_of_source, strict=True) if s.split == split)
        if files and not read:
            raise DataError(f"{_names(files)}: no tokens in the {split} text, the text is empty")
    if not all(merger.size.values()):
        raise _NothingHeldOut


def _describe(
    folder: Path,
    sources: list[Source],
    recipe: Recipe,
    key: dict[str, Any],
    words: list[str],
    counts: np.ndarray,
    merger: _Merger,
) -> None:
    """Write the words, their counts and the record that is the last file of a prepared corpus."""
    with (folder / "words.txt").open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{word}\n" for word in words)
    np.save(folder / "counts.npy", counts)
    cased = np.array([word != (lower := word.lower()) or lower != word.upper() for word in words])
    lower = np.array([word == word.lower() for word in words])
    kinds = sorted({source.kind for source in sources})
    write_json(
        folder / "meta.json",
        {
            "format": FORMAT,
            "files": [
                {
                    "name": source.path.name,
                    "split": source.split,
                    "input": source.kind,
                    "sha256": source.sha256,
                    "bytes": source.path.stat().st_size,
                    "tokens": merger.tokens_of_source[number],
                    "sentences": merger.sentences_of_source[number],
                }
                for number, source in enumerate(sources)
            ],
            "settings": key["settings"],
            "input": kinds[0] if len(kinds) == 1 else "mixed",
            "methods": key["methods"],
            "held_out": recipe.held_out,
            "words": len(words),
            "lowercase_share": float(counts[cased & lower].sum() / max(counts[cased].sum(), 1)),
            **{
                split: {
                    "tokens": merger.size[split],
                    "sentences": _stream_files(folder, split)[1].stat().st_size // 8 - 1,
                }
                for split in SPLITS
            },
        },
    )


def _stream_files(folder: Path, split: str) -> tuple[Path, Path]:
    return folder / f"{split}.tokens.bin", folder / f"{split}.starts.bin"


def _open(folder: Path) -> Prepared:
    """Open a prepared corpus.

    Raises:
        FormatError: a file is missing or not of the size that the record says.
    """
    description = read_json(folder / "meta.json")
    try:
        words = (folder / "words.txt").read_text(encoding="utf-8").split("\n")[:-1]
        counts = np.load(folder / "counts.npy", allow_pickle=False)
        streams = {split: _open_stream(folder, split) for split in SPLITS}
        sizes = {split: (stream.n_tokens, stream.n_sentences) for split, stream in streams.items()}
        recorded = {split: (description[split]["tokens"], description[split]["sentences"]) for split in SPLITS}
        n_words = description["words"]
    except (OSError, ValueError, KeyError) as error:
        raise FormatError(f"{folder} is damaged: {error}") from None
    if sizes != recorded or not len(words) == len(counts) == n_words:
        raise FormatError(f"{folder} is damaged: it holds {sizes}, its record says {recorded}")
    return Prepared(folder, folder.name, words, counts, streams["train"], streams["valid"], description)


def _open_stream(folder: Path, split: str) -> TokenStream:
    tokens, starts = _stream_files(folder, split)
    return TokenStream(np.memmap(tokens, "<i4", mode="r"), np.memmap(starts, "<i8", mode="r"))


def _names(sources: Sequence[Source]) -> str:
    names = [str(source.path) for source in sources]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
