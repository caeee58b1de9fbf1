"""The cached form of a tokenised corpus: its writer and its reader."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from toolkit.errors import FormatError
from toolkit.files import read_json, write_json
from toolkit.text.workers import SPLITS, Counted, Source

FORMAT = 1  # of the cache; raise it whenever the same text and settings would give another result
REMAP = 4_000_000  # tokens renumbered at a time


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


class Merger:
    """Joins tokenised chunks in their order; the files grow on disk, only the distinct words are held.

    Use it as a context manager around the calls of `add`, then call `finish`.

    Args:
        folder: an empty folder that becomes the prepared corpus.
        n_sources: the number of files of the corpus.

    Attributes:
        size, sentences: tokens and sentences so far, by split.
        tokens_of_source: tokens so far, by the file's number.
    """

    def __init__(self, folder: Path, n_sources: int) -> None:
        self.folder = folder
        self.tokens_of_source = [0] * n_sources
        self.size = dict.fromkeys(SPLITS, 0)
        self.sentences = dict.fromkeys(SPLITS, 0)
        self._number: dict[str, int] = {}
        self._counts = np.zeros(1 << 16, np.int64)  # room to grow
        self._stack = ExitStack()
        self._files: dict[str, tuple[BinaryIO, BinaryIO]] = {}

    @property
    def n_tokens(self) -> int:
        """Return the tokens so far, of all splits."""
        return sum(self.size.values())

    def __enter__(self) -> "Merger":
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
            self.tokens_of_source[source] += len(ids)
            self.sentences[split] += len(lengths)
        self._counts[to_global] += np.bincount(counted.ids["train"], minlength=len(to_global))

    def finish(self, sources: Sequence[Source], key: dict[str, Any], held_out: float) -> None:
        """Renumber the words by falling frequency and write them, their counts and the record.

        Args:
            sources: the files of the corpus, in the order of their numbers.
            key: what the cache's fingerprint was made from.
            held_out: the share of the paragraphs that the hash held out.
        """
        counts = self._counts[: len(self._number)]
        order = np.argsort(-counts, kind="stable")  # numbers go by first appearance, and so do equal counts
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        for split in SPLITS:
            tokens = np.memmap(_stream_files(self.folder, split)[0], "<i4", mode="r+")
            for begin in range(0, len(tokens), REMAP):
                tokens[begin : begin + REMAP] = rank[tokens[begin : begin + REMAP]]
            tokens.flush()
        first_seen = list(self._number)
        words, counts = [first_seen[i] for i in order], counts[order]
        with (self.folder / "words.txt").open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{word}\n" for word in words)
        np.save(self.folder / "counts.npy", counts)
        kinds = sorted({source.kind for source in sources})
        description = {
            "format": key["format"],
            "settings": key["settings"],
            "methods": key["methods"],
            "input": kinds[0] if len(kinds) == 1 else "mixed",
            "held_out": held_out,
            "words": len(words),
            "lowercase_share": lowercase_share(words, counts),
            **{split: {"tokens": self.size[split], "sentences": self.sentences[split]} for split in SPLITS},
            "files": [
                {
                    "name": source.path.name,
                    "split": source.split,
                    "input": source.kind,
                    "sha256": source.sha256,
                    "bytes": source.path.stat().st_size,
                    "tokens": tokens,
                }
                for source, tokens in zip(sources, self.tokens_of_source, strict=True)
            ],
        }
        write_json(self.folder / "meta.json", description)


def lowercase_share(words: Sequence[str], counts: np.ndarray) -> float:
    """Return the share of the tokens with a letter that hold no upper-case one; `counts` int64 goes by word."""
    cased = lower = 0
    for word, count in zip(words, counts.tolist(), strict=True):
        if word.lower() != word.upper():
            cased += count
            lower += count * (word == word.lower())
    return lower / max(cased, 1)


def _stream_files(folder: Path, split: str) -> tuple[Path, Path]:
    return folder / f"{split}.tokens.bin", folder / f"{split}.starts.bin"


def open_prepared(folder: Path) -> Prepared:
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
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{folder} is damaged: {error}") from None
    if sizes != recorded or not len(words) == len(counts) == n_words:
        raise FormatError(f"{folder} is damaged: it holds {sizes}, its record says {recorded}")
    return Prepared(folder, folder.name, words, counts, streams["train"], streams["valid"], description)


def _open_stream(folder: Path, split: str) -> TokenStream:
    tokens, starts = _stream_files(folder, split)
    return TokenStream(np.memmap(tokens, "<i4", mode="r"), np.memmap(starts, "<i8", mode="r"))
