"""Reading labelled sentences, with the file and the line in every complaint."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tasks.task import Example
from toolkit.errors import DataError
from toolkit.text.corpus import lines
from toolkit.text.tokenize import Tokenizer

_TOKENISED = Tokenizer("en", lowercase=False, input_kind="tokenised")


def tokens_of(text: str) -> tuple[str, ...]:
    """Split a tokenised sentence at white space; control characters count as blanks."""
    return tuple(token for sentence in _TOKENISED.sentences(text) for token in sentence)


def share(text: str) -> float:
    """Return a number from 0 to 1, below 1, that depends on the text alone: it splits data the same way everywhere."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64


def examples(rows: Iterable[tuple[int, str, str]], labels: Mapping[str, str], file: str, prefix: str) -> list[Example]:
    """Make examples of labelled sentences; their ids are `prefix-line`.

    Args:
        rows: line number from 1, label as written, tokenised sentence.
        labels: label as written to the task's label.
        file: for messages.
        prefix: of the ids, such as the split's name.

    Raises:
        DataError: there is no row, a label is not known, or a sentence is empty.
    """
    found = []
    for number, label, text in rows:
        if label not in labels:
            raise DataError(f"{file}, line {number}: the label {label!r} is none of {', '.join(map(repr, labels))}")
        tokens = tokens_of(text)
        if not tokens:
            raise DataError(f"{file}, line {number}: there is no sentence behind the label {label!r}")
        found.append(Example(f"{prefix}-{number}", tokens, labels[label]))
    if not found:
        raise DataError(f"{file} is empty: it should hold a label and a sentence a line")
    return found


def label_first(path: Path, labels: Mapping[str, str], prefix: str) -> list[Example]:
    """Read a file of `<label> <tokens>` lines in UTF-8; errors as in `examples`, and for bytes that are not UTF-8."""
    return examples(_label_first_rows(path), labels, str(path), prefix)


def _label_first_rows(path: Path) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(lines(path), 1):
        label, _, text = line.partition(" ")
        yield number, label, text
