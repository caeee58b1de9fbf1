"""UD POS: the universal part of speech of each word of an English web text."""

from pathlib import Path

from tasks.data import Folder
from tasks.reading import token_blocks
from tasks.task import Example, Splits, Task
from toolkit.errors import DataError

LABELS = (
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM"),
    *("PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
)
FILES = ("en_ewt-ud-train.conllu.xz", "en_ewt-ud-dev.conllu", "en_ewt-ud-test.conllu")
COLUMNS = 10


def read(folder: Path) -> Splits:
    """Read the treebank's splits of 12544, 2001 and 2077 sentences (204577, 25147 and 25094 words).

    Words are those with an integer id; multiword tokens ("1-2") and empty nodes ("1.1") carry no tag of their own.
    """
    parts = (_part(folder / file, part) for part, file in zip(("train", "dev", "test"), FILES, strict=True))
    return Splits(*parts, f"the splits of UD English EWT 2.16 in {folder}")


def _part(path: Path, prefix: str) -> list[Example]:
    found = []
    for number, (start, block) in enumerate(token_blocks(path), 1):
        words = [(line, row.split("\t")) for line, row in enumerate(block, start) if not row.startswith("#")]
        for line, fields in words:
            if len(fields) != COLUMNS:
                raise DataError(f"{path}, line {line}: {len(fields)} columns, {COLUMNS} expected (CoNLL-U)")
        words = [(line, fields) for line, fields in words if fields[0].isdigit()]
        if not words:
            raise DataError(f"{path}, line {start}: a sentence without a word")
        for line, fields in words:
            if fields[3] not in LABELS:
                raise DataError(f"{path}, line {line}: {fields[3]!r} is no universal part of speech")
        tokens, tags = zip(*((fields[1], fields[3]) for _, fields in words), strict=True)
        found.append(Example(f"{prefix}-{number}", tokens, tags=tags))
    return found


TASK = Task(
    name="ud_pos",
    version=1,
    title="Universal parts of speech, English Web Treebank",
    metric="accuracy",
    labels=LABELS,
    licence="CC BY-SA 4.0",
    citation="Silveira et al. (2014). A gold standard dependency corpus for English. LREC; UD 2.16",
    source="https://universaldependencies.org/treebanks/en_ewt/",
    sizes={"train": 12544, "dev": 2001, "test": 2077},
    published={
        "most frequent tag of each word, NOUN for unknown ones (the floor `bag`; dev 0.861)": 0.862,
        "UDPipe Future, UD 2.3 (Kondratyuk and Straka 2019)": 0.9629,
        "UDify, UD 2.3 (Kondratyuk and Straka 2019)": 0.9621,
        "RoBERTa, fine-tuned, UD 2.5 (spaCy's en_udv25_englishewt_trf)": 0.9694,
    },
    places=((Folder("ud_ewt", FILES), read),),
    kind="tagging",
    repeated={"dev": 68, "test": 94},
)
