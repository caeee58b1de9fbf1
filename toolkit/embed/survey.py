"""A first pass over the text of a dump: what is in it, and how large the dump will be."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from toolkit.bilm.spec import BiLMSpec
from toolkit.embed.dumpwriter import BYTES_PER_DATASET
from toolkit.embed.reading import check_text, tokenised_lines
from toolkit.errors import DataError
from toolkit.progress import Progress
from toolkit.text.mark import TextMark
from toolkit.text.vocab import UNK, Vocabulary


@dataclass(frozen=True)
class Survey:
    """What a tokenised text holds.

    Attributes:
        sentences: lines, blank ones too.
        tokens: tokens of all lines.
        unknown: how many of them a model that reads words takes for `<UNK>`, None for one that reads characters.
        fingerprint: of the text, see `toolkit.text.mark`.
    """

    sentences: int
    tokens: int
    unknown: int | None
    fingerprint: str

    def size(self, spec: BiLMSpec, layers: str, dtype: str) -> int:
        """Return the bytes of an uncompressed dump.

        Args:
            spec: of the model.
            layers: see `choose_layers`.
            dtype: of the vectors in the file.
        """
        kept = spec.n_layers + 1 if layers == "all" else 1
        return self.tokens * kept * spec.width * np.dtype(dtype).itemsize + self.sentences * BYTES_PER_DATASET


def survey(file: Path, vocabulary: Vocabulary | None) -> Survey:
    """Read a text once, which takes about a thousandth of the time that encoding it does.

    Args:
        file: UTF-8 text, a sentence a line, tokens between white space; plain, .gz, .bz2 or .xz.
        vocabulary: of a model that reads words; None for one that reads characters.

    Raises:
        UsageError: there is no such file.
        DataError: it is empty, not UTF-8 or damaged.
    """
    check_text(file)
    mark = TextMark()
    sentences = tokens = unknown = 0
    with Progress("reading", file.stat().st_size, "B") as progress:
        for line in tokenised_lines(file, progress):
            sentences += 1
            tokens += len(line)
            mark.add(line)
            if vocabulary is not None:
                unknown += sum(vocabulary.id(word) == vocabulary.ids[UNK] for word in line)
    if not sentences:
        raise DataError(f"{file} is empty: it should hold one tokenised sentence a line")
    return Survey(sentences, tokens, None if vocabulary is None else unknown, mark.fingerprint)


def sections(sentences: Iterable[Sequence[str]], tokens: int) -> Iterator[list[Sequence[str]]]:
    """Part sentences, in order, into lists that hold just so many tokens, sentence marks included, or a little more."""
    section, count = [], 0
    for sentence in sentences:
        section.append(sentence)
        count += len(sentence) + 2
        if count >= tokens:
            yield section
            section, count = [], 0
    if section:
        yield section
