"""Occurrences with the vectors of a dump, of any encoder, in place of a biLM (no TensorFlow needed)."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from toolkit.embed.dumpfile import Dump
from toolkit.embed.dumpmark import fingerprint_of
from toolkit.embed.reading import check_text, tokenised_lines
from toolkit.errors import DataError, UsageError
from toolkit.progress import Progress
from toolkit.senses.keep import Vectors
from toolkit.senses.sources import Occurrence
from toolkit.text.mark import TextMark


def dumped_source(file: Path, words: Sequence[str]) -> tuple[str, Iterator[Occurrence]]:
    """Return the text that a dump was made of as a source: its name, and the occurrences of words (read later).

    Args:
        file: UTF-8, a sentence a line, tokens between white space; .gz, .bz2 and .xz too.
        words: what to look for; a word matches a whole token, whatever the case.

    Raises:
        UsageError: there is no such file, or no word to look for.
        DataError (when read): the file is not UTF-8 or damaged.
    """
    check_text(file)
    if not words:
        raise UsageError("--sentences needs --words: which words, commas between")
    return str(file), _matches(file, {word.lower() for word in words})


def _matches(file: Path, wanted: set[str]) -> Iterator[Occurrence]:
    with Progress("looking", file.stat().st_size, "B") as progress:
        for line in tokenised_lines(file, progress):
            for position, token in enumerate(line):
                if token.lower() in wanted:
                    yield Occurrence(token.lower(), position, "", tuple(line))


def vectors_of_dump(dump: Dump, file: Path) -> Vectors:
    """Return a dump as what gives the vectors of sentences; they are looked up by their tokens.

    Of equal sentences the first one's vectors count.

    Args:
        dump: open as long as the result is used.
        file: the text that it was made of, line i for dataset i.

    Raises (when sentences are asked for):
        DataError: text and dump do not fit together, or a sentence is not in the text.
        FormatError: the dump is damaged, or says that it is of another text.
    """

    def encode(sentences: Sequence[tuple[str, ...]]) -> Iterator[np.ndarray]:
        lines = _lines_of(sentences, dump, file)
        return (dump.layers(lines[tokens]) for tokens in sentences)

    state = str(dump.attributes.get("state", ""))
    made_with = {"embeddings": str(dump.path.resolve())}
    if "state_mark" in dump.attributes:
        made_with["state_mark"] = str(dump.attributes["state_mark"])
    return Vectors((dump.n_layers or 1, dump.width), fingerprint_of(dump), state, made_with, encode)


def _lines_of(sentences: Sequence[tuple[str, ...]], dump: Dump, file: Path) -> dict[tuple[str, ...], int]:
    """Return where each sentence stands first; check every line of the text against the dump on the way."""
    check_text(file)
    wanted, lines, mark, count = set(sentences), {}, TextMark(), 0
    with Progress("comparing", file.stat().st_size, "B") as progress:
        for number, line in enumerate(tokenised_lines(file, progress)):
            count += 1
            mark.add(line)
            if number < len(dump) and dump.n_tokens(number) != len(line):
                raise DataError(
                    f"{dump.path} has {dump.n_tokens(number)} vectors for sentence {number}, {file}, line {number + 1} "
                    f"has {len(line)} tokens: give the text that the dump was made of"
                )
            if tuple(line) in wanted:
                lines.setdefault(tuple(line), number)
    if count != len(dump):
        raise DataError(f"{dump.path} holds {len(dump):,} sentences, {file} {count:,} lines: they should be as many")
    if "text_fingerprint" in dump.attributes:
        dump.require(text_fingerprint=mark.fingerprint)
    absent = next((tokens for tokens in sentences if tokens not in lines), None)
    if absent is not None:
        raise DataError(f"{file} lacks the sentence {' '.join(absent)!r}, so that {dump.path} has no vectors of it")
    return lines
