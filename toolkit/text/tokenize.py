"""Sentences of tokens from lines of text."""

import functools
import importlib.metadata
import importlib.util
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import sentencex
from sacremoses import MosesTokenizer

InputKind = Literal["raw", "tokenised"]

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
IDEOGRAPH = r"\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
CHINESE_WITHOUT_WORDS = re.compile(rf"[^\W{IDEOGRAPH}]+|\S")

# Marks that stand alone in tokenised text and lean on a word in raw text. French puts a blank before ? ! ; : in raw
# text, so these do not tell. A full-width mark leans even where no blank follows.
ALONE = re.compile(r"(?<!\S)[,.،、，。](?!\S)")
LEANING = re.compile(r"(?<=\S)[,.،](?!\S)|(?<=\S)[、，。]|[、，。](?=\S)")


class Tokenizer:
    """Splits lines into sentences and these into tokens.

    Raw lines are paragraphs: `sentencex` finds the sentences and the Moses rules (`sacremoses`, nothing escaped) the
    tokens, as for the published models. `sentencex` was taken over `nupunkt`, which is for English only and was 8
    times slower on 3,900 paragraphs of English Wikipedia. They agreed on 93 of 100 paragraphs; most of the rest are
    quotations of several sentences, which `sentencex` keeps whole, and of the others neither got clearly more right.

    Chinese words (language `zh`) come from `rjieba` where it is installed (the `zh` extra); without it each
    ideograph is a token. Tokenised lines are one sentence each and split at white space.

    Control characters count as blanks, so a token is never empty and holds neither white space nor a control
    character. Nothing else is lost.

    Args:
        language: ISO 639 code; one that the libraries do not know is treated as English.
        lowercase: whether tokens are lower-cased, after splitting.
        input_kind: "raw" or "tokenised"; `detect_input` tells them apart.
    """

    def __init__(self, language: str, lowercase: bool, input_kind: InputKind) -> None:
        self.language, self.lowercase, self.input_kind = language, lowercase, input_kind
        self._words = str.split if input_kind == "tokenised" else _word_splitter(language)

    def sentences(self, line: str) -> list[list[str]]:
        """Return the sentences of a line as lists of tokens; a blank line has none, and no sentence is empty."""
        line = CONTROL.sub(" ", line)
        if self.lowercase:
            return [[token.lower() for token in tokens] for tokens in self._split(line)]
        return self._split(line)

    def _split(self, line: str) -> list[list[str]]:
        pieces = [line] if self.input_kind == "tokenised" else sentencex.segment(self.language, line)
        return [tokens for piece in pieces if (tokens := self._words(piece))]


def method(language: str, input_kind: InputKind) -> str:
    """Name what splits such text, with versions, for the record: "sentencex 1.0.32, sacremoses 0.2.0"."""
    if input_kind == "tokenised":
        return "white space"
    library = _word_library(language)
    words = _with_version(library) if library else "single characters for want of rjieba (the zh extra)"
    return f"{_with_version('sentencex')}, {words}"


def _with_version(library: str) -> str:
    return f"{library} {importlib.metadata.version(library)}"


def detect_input(lines: Iterable[str]) -> InputKind | None:
    """Tell tokenised text from raw text by its commas and full stops.

    Args:
        lines: a sample; some thousand words do.

    Returns:
        "tokenised" when most of these marks stand alone between blanks, "raw" when they lean on words, None when
        the sample has no such mark.
    """
    alone = leaning = 0
    for line in lines:
        alone += len(ALONE.findall(line))
        leaning += len(LEANING.findall(line))
    if alone + leaning == 0:
        return None
    return "tokenised" if alone > leaning else "raw"


def agreed(found: Sequence[InputKind | None]) -> list[InputKind]:
    """Settle the kinds of a corpus's files: one without a comma or full stop (None) is as most of the others are."""
    usual: InputKind = "tokenised" if found.count("tokenised") > found.count("raw") else "raw"
    return [kind or usual for kind in found]


def _word_library(language: str) -> str:
    if not _is_chinese(language):
        return "sacremoses"
    return "rjieba" if importlib.util.find_spec("rjieba") else ""


def _is_chinese(language: str) -> bool:
    return re.split("[-_]", language.lower())[0] == "zh"


def _word_splitter(language: str) -> Callable[[str], list[str]]:
    library = _word_library(language)
    if library == "sacremoses":
        return functools.partial(MosesTokenizer(language).tokenize, escape=False)
    if library == "rjieba":
        import rjieba

        return lambda sentence: [word for text in sentence.split() for word in rjieba.cut(text)]
    return CHINESE_WITHOUT_WORDS.findall
