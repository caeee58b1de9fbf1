"""Checking a vocabulary file line by line: what training refuses, and what makes its words differ unseen."""

import hashlib
import itertools
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from toolkit.config import Settings, cache_folder
from toolkit.errors import UsageError
from toolkit.text import characters
from toolkit.text.corpus import BOM, UTF16, near
from toolkit.text.prepare import prepare
from toolkit.text.problems import Kind, Problems
from toolkit.text.vocab import IGNORED, RESERVED, SPECIALS
from toolkit.text.vocabbuild import counts_of

KINDS = {
    "kind": Kind("error", "not a vocabulary", "a vocabulary is UTF-8 text, one word a line"),
    "encoding": Kind("error", "bytes that are not UTF-8", "convert the file from its encoding, with iconv"),
    "bom": Kind("error", "byte order mark", "save the file as UTF-8 without it: it becomes part of the first word"),
    "special": Kind("error", "missing special tokens", "put <S>, </S> and <UNK> on the first three lines"),
    "blank line": Kind("error", "blank lines", "delete them: a vocabulary has one word a line"),
    "duplicate": Kind("error", "words that stand twice", "keep the first line of each"),
    "return": Kind("error", "carriage returns inside a line", "delete them: other readers end the line there"),
    "special order": Kind(
        "warning",
        "special tokens elsewhere",
        "a new vocabulary has <S>, </S>, <UNK> first; with a trained softmax keep it",
    ),
    "crlf": Kind("warning", "lines that end in CR LF", "convert them, e.g. sed -i 's/\\r$//'"),
    "several": Kind("warning", "blanks inside a line", "keep one word a line: no token of a text holds a blank"),
    "control": Kind("warning", "control characters", "delete these words: tokenising takes such characters out"),
    "invisible": Kind("warning", "invisible characters", "clean the text and build again: each splits a word in two"),
    "blank": Kind(
        "warning", "blanks that are no space", "delete these words: readers that strip lines see them differ"
    ),
    "replacement": Kind("warning", "replacement characters", "decode the text anew from its source: letters are lost"),
    "private": Kind("warning", "private or unassigned characters", "look where they came from; fonts differ on them"),
    "mojibake": Kind("warning", "text decoded wrongly", "decode the text anew as UTF-8 and build again"),
    "look-alike": Kind("warning", "look-alike letters", "replace them in the text and build again"),
    "twin": Kind("warning", "words that look the same", "see whether both scripts belong in the text"),
    "letter form": Kind(
        "warning", "ligatures, wide and mathematical letters", "normalise the text (NFKC) and build again"
    ),
    "nfc": Kind("warning", "words not in Unicode form NFC", "normalise the text (NFC) and build again"),
    "order": Kind("warning", "words rarer than the next one", "the sampled softmax draws by falling frequency"),
}


def check(file: Path, corpus: Sequence[str], settings: Settings) -> dict[str, Any]:
    """Check a vocabulary file, and how it fits a corpus.

    Errors are what training or other readers refuse or misread; warnings are what they take as it is.

    Args:
        file: the vocabulary.
        corpus: text as in `prepare`, tokenised with `settings.text`; empty to leave it out.
        settings: as for pretraining.

    Returns:
        the JSON document: vocabulary, words, fingerprint (as `toolkit inspect` shows it), errors, warnings, problems
        (see `Problems.document`; places have a line, and a column where one matters) and, with a corpus, `corpus`:
        fingerprint, tokens and coverage (train, valid), absent (words that the training text lacks), in_order,
        rank_correlation (Spearman's, with the order by falling count: 1 is in order; null for fewer than two words).

    Raises:
        UsageError: there is no such file.
        UsageError, DataError: see `prepare`.
    """
    if not file.is_file():
        raise UsageError(f"{file} is not a file{near(file)}")
    problems = Problems(KINDS)
    first_line = _read(file.read_bytes(), problems)
    _check_specials(first_line, problems)
    _check_twins(first_line, problems)
    document: dict[str, Any] = {
        "vocabulary": str(file),
        "words": len(first_line),
        "fingerprint": hashlib.sha256("\n".join(first_line).encode("utf-8", "surrogateescape")).hexdigest()[:16],
    }
    fit = _fit(first_line, corpus, settings, problems) if corpus else None
    document |= {"errors": problems.total("error"), "warnings": problems.total("warning")}
    return document | {"problems": problems.document()} | ({"corpus": fit} if fit else {})


def _read(data: bytes, problems: Problems) -> dict[str, int]:
    """Return each word's first line; report what is wrong with lines and words."""
    first_line: dict[str, int] = {}
    if data.startswith(UTF16):
        problems.add("kind", "UTF-16; convert it, e.g. iconv -f utf-16 -t utf-8", line=1)
        return first_line
    if b"\0" in data:
        problems.add("kind", "a binary file: it holds zero bytes", line=data.count(b"\n", 0, data.index(b"\0")) + 1)
        return first_line
    if data.startswith(BOM):
        problems.add("bom", "the file begins with one", line=1)
        data = data.removeprefix(BOM)
    for number, line in enumerate(data.removesuffix(b"\n").split(b"\n"), start=1):
        text = line.decode("utf-8", "surrogateescape")
        word = text.removesuffix("\r")
        if word != text:
            problems.add("crlf", characters.shown(word), line=number)
        if not word.strip(" \t"):
            problems.add("blank line", "empty" if not word else "blanks only", line=number)
        elif word in first_line:
            problems.add(
                "duplicate", f"{characters.shown(word)} stands on line {first_line[word]:,} already", line=number
            )
        elif word != IGNORED:
            first_line[word] = number
            _check_word(word, number, problems)
    return first_line


def _check_word(word: str, line: int, problems: Problems) -> None:
    shown = characters.shown(word)
    for character, found in characters.unseen(word).items():
        kind = {"\r": "return", "\t": "several"}.get(character, found.kind)
        problems.count(kind, found.count)
        problems.place(kind, f"{characters.name(character)} in {shown}", line=line, column=found.first + 1)
    if " " in word:
        problems.add("several", shown, line=line, column=word.index(" ") + 1)
    if word.isascii():
        return
    if characters.MOJIBAKE.search(word):
        problems.add("mojibake", shown, line=line)
    for kind, detail in (("look-alike", characters.look_alikes(word)), ("letter form", characters.letter_forms(word))):
        if detail:
            problems.add(kind, f"{shown} holds {detail}", line=line)
    if characters.not_nfc(word) is not None:
        problems.add(
            "nfc", f"{shown}, {len(word)} characters; in NFC {len(unicodedata.normalize('NFC', word))}", line=line
        )


def _check_specials(first_line: dict[str, int], problems: Problems) -> None:
    for place, word in enumerate(SPECIALS, start=1):
        if word not in first_line:
            problems.add("special", f"{word} is missing", line=place)
        elif first_line[word] != place:
            problems.add("special order", f"{word}, which belongs on line {place}", line=first_line[word])


def _check_twins(first_line: dict[str, int], problems: Problems) -> None:
    for word, line in first_line.items():
        twin = characters.latin_twin(word)
        if len(word) > 1 and twin in first_line:  # single letters of two alphabets are in every mixed text
            shown = f"{characters.shown(word)} ({characters.name(word[0])}, …)"
            problems.add("twin", f"{shown} looks like the word of line {first_line[twin]:,}", line=line)


def _fit(words: dict[str, int], corpus: Sequence[str], settings: Settings, problems: Problems) -> dict[str, Any]:
    prepared = prepare(corpus, None, settings.text, settings.pretrain.valid_fraction, cache_folder(settings))
    counts = counts_of(prepared)
    known = np.array([word in words and word not in RESERVED for word in prepared.words], bool)
    of_word = dict(zip(prepared.words, counts["train"].tolist(), strict=True))
    own = [(word, line, of_word.get(word, 0)) for word, line in words.items() if word not in RESERVED]
    in_order = True
    for (word, line, count), (next_word, _, next_count) in itertools.pairwise(own):
        if count < next_count:
            detail = f"{characters.shown(word)} occurs {count:,} times, {characters.shown(next_word)} {next_count:,}"
            problems.add("order", detail, line=line)
            in_order = False
    numbers = np.array([count for _, _, count in own], np.int64)
    return {
        "fingerprint": prepared.fingerprint,
        "tokens": {"train": prepared.train.n_tokens, "valid": prepared.valid.n_tokens},
        "coverage": {
            split: round(int(values[known].sum()) / max(int(values.sum()), 1), 6) for split, values in counts.items()
        },
        "absent": int(np.count_nonzero(numbers == 0)),
        "in_order": in_order,
        "rank_correlation": _rank_correlation(numbers),
    }


def _rank_correlation(counts: np.ndarray) -> float | None:
    """Return Spearman's between the places and those of a stable sort, so that ties in order count as in order."""
    if len(counts) < 2:
        return None
    places = np.argsort(np.argsort(-counts, kind="stable"))
    return round(float(spearmanr(np.arange(len(counts)), places).statistic), 4)
