"""Sentences with a tag per token from a user's files in the CoNLL manner: a token per line, blank lines between."""

import re
from collections.abc import Iterator
from pathlib import Path

from tasks.reading import token_blocks
from tasks.tables import suffix_of
from toolkit.errors import DataError, UsageError

SUFFIXES = (".conll", ".conllu", ".iob", ".iob2", ".bio", ".tsv", ".txt")
SPAN_TAG = re.compile(r"O|[BIES]-.+")
LAST = "last"


def is_tag_file(path: Path) -> bool:
    """Return whether the name is that of a file of tagged tokens; a compression's suffix may follow."""
    return suffix_of(path) in SUFFIXES


def column_number(option: str, value: str) -> int:
    """Return the index of a column: from 0, or -1 for "last".

    Raises:
        UsageError: it is neither "last" nor a number from 1.
    """
    if value == LAST:
        return -1
    if not (value.isascii() and value.isdigit() and 0 < int(value[:9]) < 1000):
        raise UsageError(f"{option} {value!r}: with tags a column is a number from 1, or {LAST!r}")
    return int(value) - 1


def tagged_sentences(path: Path, token: int, tag: int) -> Iterator[tuple[int, tuple[str, ...], tuple[str, ...]]]:
    """Yield the first line's number, the tokens and the tags of each sentence.

    Columns are separated by tabs, or without any tab by white space. `-DOCSTART-` lines are left out, and of .conllu
    files comments, multiword tokens (1-2) and empty nodes (1.1).

    Args:
        path: UTF-8 text.
        token, tag: the columns, see `column_number`.

    Raises:
        DataError: a line has too few columns, or its token or tag is empty or holds white space.
    """
    universal = suffix_of(path) == ".conllu"
    for start, block in token_blocks(path):
        tokens, tags = [], []
        for number, line in enumerate(block, start):
            no_word = universal and not line.split("\t")[0].isdigit()
            if line.startswith("-DOCSTART-") or no_word:
                continue
            fields = line.split("\t") if "\t" in line else line.split()
            needed = max(token, tag) + 1
            if len(fields) < max(needed, 2):
                raise DataError(
                    f"{path}, line {number}: {len(fields)} columns, at least {max(needed, 2)} are needed: "
                    "a token and its tag on each line, blank lines between sentences"
                )
            word, label = fields[token].split(), fields[tag].split()
            if len(word) != 1 or len(label) != 1:
                raise DataError(
                    f"{path}, line {number}: token {fields[token]!r}, tag {fields[tag]!r}: one of each is needed"
                )
            tokens += word
            tags += label
        if tokens:
            yield start, tuple(tokens), tuple(tags)
