"""Tokenising the files of a corpus in parallel processes, with results in the order of the text."""

import functools
import hashlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path

import numpy as np

from toolkit.errors import ToolkitError
from toolkit.text import corpus
from toolkit.text.tokenize import InputKind, Tokenizer

CHUNK = 1_000_000  # characters of text that one task of a worker holds
# Bytes of a line that are held at a time. Some of the libraries' rules take time that grows with a sentence's square.
LINE_LIMIT: dict[InputKind, int] = {"raw": 1 << 16, "tokenised": 1 << 20}
SPLITS = ("train", "valid")


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
    lowercase_paragraphs: float = 0.0  # share of the training paragraphs whose tokens are lower-cased


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


def chunks(sources: Sequence[Source]) -> Iterator[Chunk]:
    """Read the files, one after the other; a chunk never spans two."""
    for number, source in enumerate(sources):
        with corpus.opened(source.path) as (raw, stream):
            held: list[str] = []
            size = reported = 0
            for line in corpus.decoded(stream, source.path, LINE_LIMIT[source.kind]):
                held.append(line)
                size += len(line) + 1  # blank lines take memory, too
                if size >= CHUNK:
                    yield Chunk(number, held, raw.tell() - reported)
                    held, size, reported = [], 0, raw.tell()
            yield Chunk(number, held, raw.tell() - reported)


def tokenised(
    chunks: Iterator[Chunk], sources: Sequence[Source], recipe: Recipe, workers: int
) -> Generator[tuple[Chunk, Counted], None, None]:
    """Tokenise chunks, with results in the order of the chunks whatever the number of processes.

    Args:
        chunks: from `chunks`; read no further ahead than two chunks a worker.
        sources: the files that the chunks' `source` counts.
        recipe: how to tokenise.
        workers: the number of processes; 1 works in this one.

    Raises:
        ToolkitError: a process died.
    """
    if workers == 1:
        for chunk in chunks:
            yield chunk, _count(chunk.lines, sources[chunk.source].split, sources[chunk.source].kind, recipe)
        return
    # Not fork: TensorFlow's threads may run in this process, and a forked child would inherit their locks.
    context = multiprocessing.get_context("spawn")
    stop, held = context.Pipe(duplex=False)  # the workers see it close when this process gives up or dies
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker, initargs=(stop,))
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
            "a tokenising process ended abruptly (its own message stands above, or memory ran out); "
            "try --set text.processes=1"
        ) from None
    finally:
        held.close()
        pool.shutdown(cancel_futures=True)
        stop.close()


def processes_for(size: int, wanted: int) -> int:
    """Return how many processes to start for `size` bytes of files; `wanted` is `text.processes`, 0 for one a core."""
    # Starting processes for one chunk would take longer than the work.
    return 1 if size <= CHUNK else wanted or os.cpu_count() or 1


_given_up = threading.Event()


def _start_worker(stop: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent ends the workers
    threading.Thread(target=_watch, args=(stop,), daemon=True).start()


def _watch(stop: Connection) -> None:
    """Cut the work short when the parent gives up, and leave when it is gone: a worker's queue never closes."""
    wait([stop])
    _given_up.set()
    wait([multiprocessing.parent_process().sentinel])
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
        if _given_up.is_set():
            break  # nobody waits for the result
        where = "valid" if split == "train" and _falls_into(line, recipe.held_out, 0) else split
        lower = where == "train" and _falls_into(line, recipe.lowercase_paragraphs, 8)
        for tokens in tokenizer.sentences(line):
            if lower:
                tokens = [token.lower() for token in tokens]
            ids[where] += [number.setdefault(token, len(number)) for token in tokens]
            lengths[where].append(len(tokens))
    return Counted(
        list(number),
        {name: np.array(values, np.int32) for name, values in ids.items()},
        {name: np.array(values, np.int64) for name, values in lengths.items()},
    )


def _falls_into(line: str, share: float, place: int) -> bool:
    """Choose a share of the lines by 8 bytes of their hash; other bytes choose independently."""
    if share == 0:
        return False
    digest = hashlib.sha256(line.strip().encode("utf-8")).digest()
    return int.from_bytes(digest[place : place + 8], "big") < share * 2**64
