"""Checking a corpus before it is trained on: encoding, duplicates, lengths, characters, words, coverage."""

import itertools
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from toolkit.config import Settings
from toolkit.errors import DataError
from toolkit.memory import peak_memory_mb
from toolkit.progress import Progress
from toolkit.text import characters, corpus, workers
from toolkit.text.corpus import BOM, UTF16
from toolkit.text.coverage import candidates, coverage, useful_sizes
from toolkit.text.linecount import LineCounter
from toolkit.text.prepare import SAMPLE
from toolkit.text.prepared import lowercase_share
from toolkit.text.problems import Kind, Problems
from toolkit.text.tokenize import InputKind, agreed, detect_input
from toolkit.text.workers import LINE_LIMIT, Chunk, Counted, Recipe, Source

SURROGATES = re.compile("[\udc80-\udcff]")
ESCAPE = re.compile(r"&(?:amp|quot|apos|lt|gt|nbsp|#x?[0-9a-fA-F]{1,6});")
TAG = re.compile(r"(?!</?(?:s|S|unk|UNK)>)</?[a-zA-Z][a-zA-Z0-9]*(?:\s[^<>]{0,200})?/?>")
MANY_DUPLICATES, LOWER_CASED, MANY_UNKNOWN = 0.01, 0.99, 0.05  # shares from which there is advice

KINDS = {
    "nothing": Kind("error", "no tokens at all", "name files that hold text"),
    "damaged": Kind("error", "damaged files", "fetch them again"),
    "empty": Kind("warning", "files without a token", "leave them out"),
    "encoding": Kind("error", "bytes that are not UTF-8", "convert the files from their encoding, with iconv"),
    "mojibake": Kind("warning", "text decoded wrongly", "decode it anew as UTF-8 from its source"),
    "replacement": Kind("warning", "replacement characters", "decode the text anew from its source: letters are lost"),
    "control": Kind("warning", "control characters", "tokenising takes them for blanks; see what they stood for"),
    "invisible": Kind("warning", "invisible characters", "take them out: they part words or make others of them"),
    "blank": Kind(
        "warning", "blanks that are no space", "harmless: words are split at them; make them spaces if you like"
    ),
    "private": Kind("warning", "private or unassigned characters", "look where they came from; fonts differ on them"),
    "nfc": Kind(
        "warning",
        "lines not in Unicode form NFC",
        "normalise the text: tokenising parts a loose accent from its letter",
    ),
    "escape": Kind("warning", "HTML escapes", "unescape the text: &amp; is learned as it stands"),
    "markup": Kind("warning", "markup", "strip the tags: they are learned as words"),
    "look-alike": Kind(
        "warning", "tokens with look-alike letters", "replace the letters: such words are learned apart"
    ),
    "letter form": Kind("warning", "tokens with ligatures, wide or mathematical letters", "normalise the text (NFKC)"),
    "long": Kind(
        "warning", "tokens longer than the character cap", "their ends are cut; raise it or see what they are"
    ),
}


@dataclass(frozen=True)
class NumberedChunk(Chunk):
    """Lines of one file with the number of each; a line that was cut stands as several with one number."""

    numbers: list[int]


def check(patterns: Sequence[str | Path], settings: Settings) -> dict[str, Any]:
    """Read a corpus once, tokenise it as pretraining would, and say what it is and what is wrong with it.

    Nothing is written, not even to the cache. Memory holds the distinct words, 12 bytes a line and a few chunks.
    Errors are what pretraining refuses; warnings are what it takes as it is.

    Args:
        patterns: files, folders and globs as in `corpus.resolve`; validation and test files are checked too.
        settings: `text` and `model.max_characters_per_token` count.

    Returns:
        the JSON document: files (list of file, bytes (on disk), text_bytes, encoding, input, lines, tokens), bytes,
        text_bytes, lines (see `LineCounter.document`), sentences, tokens, distinct_words, lowercase_share,
        out_of_vocabulary (list of size and the share of the tokens outside the most frequent words), the errors and
        warnings (numbers), problems (see `Problems.document`), advice (texts), seconds, peak_memory_mb (of this
        process, not of those that tokenise).

    Raises:
        UsageError: a pattern matches nothing.
        ToolkitError: a worker process died.
    """
    started = time.monotonic()
    checker = Checker(corpus.resolve(patterns), settings)
    checker.run(settings.text.processes)
    return checker.document() | {
        "seconds": round(time.monotonic() - started, 1),
        "peak_memory_mb": peak_memory_mb(),
    }


class Checker:
    """One pass over a corpus: lines are looked at here as they are read, words as the tokenised chunks come back.

    Args:
        files: the corpus.
        settings: see `check`.
    """

    def __init__(self, files: Sequence[Path], settings: Settings) -> None:
        self.settings = settings
        self.problems = Problems(KINDS)
        self.lines = LineCounter()
        self.counts: dict[str, int] = {}
        self.sentences = 0
        kinds = self._kinds(files)
        self.sources = [Source(file, "train", kind, "") for file, kind in zip(files, kinds, strict=True)]
        self.files = [
            {
                "file": str(source.path),
                "bytes": source.path.stat().st_size,
                "text_bytes": 0,
                "encoding": "UTF-8",
                "input": source.kind,
                "lines": 0,
                "tokens": 0,
            }
            for source in self.sources
        ]
        self._flagged: dict[str, list[str]] = {"look-alike": [], "letter form": [], "long": []}

    def run(self, processes: int) -> None:
        """Read and tokenise everything; `processes` is as `text.processes`."""
        size = sum(file["bytes"] for file in self.files)
        recipe = Recipe(self.settings.text.language, self.settings.text.lowercase, 0.0)
        n_workers = workers.processes_for(size, processes)
        tokenised = workers.tokenised(self._chunks(), self.sources, recipe, n_workers)
        with closing(tokenised), Progress("checking", size / 1e6, "MB") as progress:
            for chunk, counted in tokenised:
                self._count(chunk, counted)
                progress.advance(chunk.read / 1e6)
        for kind, words in self._flagged.items():
            self.problems.count(kind, sum(self.counts[word] for word in words))
        for file in self.files:
            if not file["tokens"]:
                self.problems.add("empty", "no tokens were read", file=file["file"])
        if not self.counts:
            self.problems.count("nothing")

    def document(self) -> dict[str, Any]:
        """Return the JSON document of `check`, without time and memory."""
        words = list(self.counts)
        counts = np.fromiter(self.counts.values(), np.int64, len(words))
        tokens = int(counts.sum())
        sizes = useful_sizes(len(words), self.settings.vocabulary.size)
        falling = np.sort(counts[candidates(words)])[::-1]
        document = {
            "files": self.files,
            "bytes": sum(file["bytes"] for file in self.files),
            "text_bytes": sum(file["text_bytes"] for file in self.files),
            "lines": self.lines.document([file["file"] for file in self.files]),
            "sentences": self.sentences,
            "tokens": tokens,
            "distinct_words": len(words),
            "lowercase_share": round(lowercase_share(words, counts), 4),
            "out_of_vocabulary": [
                {"size": size, "share": round(1 - share, 6)}
                for size, share in zip(sizes, coverage(falling, tokens, sizes), strict=True)
            ],
            "errors": self.problems.total("error"),
            "warnings": self.problems.total("warning"),
            "problems": self.problems.document(),
        }
        return document | {"advice": advice(document, self.settings)}

    def _kinds(self, files: Sequence[Path]) -> list[InputKind]:
        if self.settings.text.input != "auto":
            return [self.settings.text.input] * len(files)
        return agreed([detect_input(itertools.islice(_sample(file), SAMPLE)) for file in files])

    def _chunks(self) -> Iterator[NumberedChunk]:
        for number, source in enumerate(self.sources):
            with corpus.opened(source.path) as (raw, stream):
                held: list[str] = []
                numbers: list[int] = []
                size = reported = 0
                for line, text in self._pieces(number, stream):
                    held.append(text)
                    numbers.append(line)
                    size += len(text) + 1  # blank lines take memory, too
                    if size >= workers.CHUNK:
                        yield NumberedChunk(number, held, raw.tell() - reported, numbers)
                        held, numbers, size, reported = [], [], 0, raw.tell()
                yield NumberedChunk(number, held, raw.tell() - reported, numbers)

    def _pieces(self, number: int, stream: BinaryIO) -> Iterator[tuple[int, str]]:
        """Yield lines with their numbers, looked at, as text that can be tokenised whatever its bytes."""
        file = self.files[number]
        try:
            for piece, whole in corpus.pieces(stream, self.sources[number].path, LINE_LIMIT[file["input"]]):
                file["text_bytes"] += len(piece)
                line, column = self.lines.number, self.lines.column
                if line == column == 1:
                    if piece.startswith(UTF16):
                        file["encoding"] = "UTF-16"
                        detail = "UTF-16; convert it, e.g. iconv -f utf-16 -t utf-8"
                        self.problems.add("encoding", detail, file=file["file"])
                        break
                    if piece.startswith(BOM):
                        file["encoding"] = "UTF-8 with byte order mark"
                        piece = piece.removeprefix(BOM)
                text = piece.decode("utf-8", "surrogateescape")
                if whole:
                    text = text.rstrip("\r\n")
                self.lines.add(piece, len(text), whole)
                self._look(text, file, line, column)
                yield line, SURROGATES.sub(characters.REPLACEMENT, text)
        except DataError as error:
            self.problems.add("damaged", str(error), file=file["file"])
        self.lines.end_file()
        file["lines"] = self.lines.last

    def _look(self, text: str, file: dict[str, Any], line: int, column: int) -> None:
        for character, found in characters.unseen(text).items():
            if character == "\t":
                continue
            if found.kind == "encoding":
                file["encoding"] = "not UTF-8"
            self.problems.count(found.kind, found.count)
            where = {"file": file["file"], "line": line, "column": column + found.first}
            self.problems.place(found.kind, characters.name(character), **where)
        if not text.isascii():
            self._match("mojibake", characters.MOJIBAKE, text, file, line, column)
            if (place := characters.not_nfc(text)) is not None:
                shown = characters.shown(text[place:], 10)
                self.problems.add("nfc", f"from {shown} on", file=file["file"], line=line, column=column + place)
        if "&" in text:
            self._match("escape", ESCAPE, text, file, line, column)
        if "<" in text:
            self._match("markup", TAG, text, file, line, column)

    def _match(
        self, kind: str, pattern: re.Pattern[str], text: str, file: dict[str, Any], line: int, column: int
    ) -> None:
        for match in pattern.finditer(text):
            self.problems.count(kind)
            if self.problems.wants(kind):
                shown = characters.shown(match.group())
                self.problems.place(kind, shown, file=file["file"], line=line, column=column + match.start())

    def _count(self, chunk: NumberedChunk, counted: Counted) -> None:
        times = np.bincount(counted.ids["train"], minlength=len(counted.words)).tolist()
        for word, number in zip(counted.words, times, strict=True):
            if word not in self.counts:
                self.counts[word] = 0
                self._meet(word, chunk)
            self.counts[word] += number
        self.sentences += len(counted.lengths["train"])
        self.files[chunk.source]["tokens"] += len(counted.ids["train"])

    def _meet(self, word: str, chunk: NumberedChunk) -> None:
        """Look at a word that stands for the first time."""
        room = self.settings.model.max_characters_per_token - 2
        size = len(word.encode("utf-8"))
        if size > room:
            self._flag("long", word, f"{characters.shown(word)}, {size:,} bytes; the cap leaves room for {room}", chunk)
        if word.isascii():
            return
        if detail := characters.look_alikes(word):
            self._flag("look-alike", word, f"{characters.shown(word)} holds {detail}", chunk)
        if detail := characters.letter_forms(word):
            self._flag("letter form", word, f"{characters.shown(word)} holds {detail}", chunk)

    def _flag(self, kind: str, word: str, detail: str, chunk: NumberedChunk) -> None:
        self._flagged[kind].append(word)
        if self.problems.wants(kind):
            holds = (line for line, text in zip(chunk.numbers, chunk.lines, strict=True) if word in self._cased(text))
            line = next(holds, chunk.numbers[0])
            self.problems.place(kind, detail, file=self.files[chunk.source]["file"], line=line)

    def _cased(self, text: str) -> str:
        return text.lower() if self.settings.text.lowercase else text


def advice(document: dict[str, Any], settings: Settings) -> list[str]:
    """Return what the figures of a corpus suggest, a sentence each; the problems have their own advice."""
    lines, found = document["lines"], []
    kinds = Counter(file["input"] for file in document["files"])
    if lines["duplicate_share"] >= MANY_DUPLICATES:
        found.append(
            f"{lines['duplicate_share']:.1%} of the lines repeat an earlier one: leave the repeats out, or validation "
            "text stands in the training text."
        )
    if len(kinds) > 1:
        found.append(
            f"{kinds['raw']} files look raw and {kinds['tokenised']} tokenised: see the list, and where that is wrong "
            "set text.input."
        )
    if lines["cut"]:
        found.append(
            f"{lines['cut']:,} lines are longer than tokenising holds at a time and are cut at a blank: put a "
            "paragraph (tokenised: a sentence) on a line."
        )
    characters_ = lines["characters"]
    if (
        set(kinds) == {"raw"}
        and characters_["median"]
        and 50 <= characters_["median"] <= characters_["percentile_99"] <= 100
    ):
        found.append(
            "The lines look as if they were wrapped at a width: join them to paragraphs, since a sentence ends with "
            "its line."
        )
    if document["tokens"] and document["lowercase_share"] >= LOWER_CASED and not settings.text.lowercase:
        found.append("The text looks lower-cased: lower-case what you embed with a model of it, too.")
    outside = next((row for row in document["out_of_vocabulary"] if row["size"] == settings.vocabulary.size), None)
    if outside and outside["share"] > MANY_UNKNOWN:
        found.append(
            f"A vocabulary of {outside['size']:,} leaves {outside['share']:.1%} of the tokens out: a larger "
            "vocabulary.size predicts more of the text."
        )
    return found


def _sample(file: Path) -> Iterator[str]:
    with corpus.opened(file) as (_, stream):
        try:
            for piece, _ in corpus.pieces(stream, file, LINE_LIMIT["raw"]):
                if text := piece.decode("utf-8", "replace").strip():
                    yield text
        except DataError:
            return  # reported when the whole file is read
