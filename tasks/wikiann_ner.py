"""WikiANN: which tokens of a Wikipedia line are the name of a person, an organisation or a place?"""

from pathlib import Path

from tasks.data import Folder
from tasks.reading import token_blocks
from tasks.task import Example, Splits, Task
from toolkit.errors import DataError

LABELS = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC")
PREFIX = "en:"


def read(folder: Path) -> Splits:
    """Read the balanced splits of 20000, 10000 and 10000 lines as "en:token<TAB>tag"."""
    parts = (_part(folder / part, part) for part in ("train", "dev", "test"))
    return Splits(*parts, f"the splits of 20,000, 10,000 and 10,000 lines in {folder}; some lines stand in several")


def _part(path: Path, prefix: str) -> list[Example]:
    found = []
    for number, (start, block) in enumerate(token_blocks(path), 1):
        tokens, tags = [], []
        for line, row in enumerate(block, start):
            token, tab, tag = row.removeprefix(PREFIX).partition("\t")
            if not tab or len(token.split()) != 1 or tag not in LABELS:
                raise DataError(f"{path}, line {line}: {row!r} is not a token, a tab and one of {', '.join(LABELS)}")
            tokens.append(token.strip())
            tags.append(tag)
        found.append(Example(f"{prefix}-{number}", tuple(tokens), tags=tuple(tags)))
    return found


TASK = Task(
    name="wikiann_ner",
    version=1,
    title="Names in English Wikipedia, three classes",
    metric="span_f1",
    labels=LABELS,
    licence="text CC BY-SA (Wikipedia); none stated for the annotation",
    citation="Pan et al. (2017). Cross-lingual name tagging for 282 languages. ACL; splits of Rahimi et al. (2019)",
    source="https://github.com/afshinrahimi/mmner",
    sizes={"train": 20000, "dev": 10000, "test": 10000},
    published={
        "multilingual BERT, fine-tuned (XTREME, Hu et al. 2020)": 0.852,
        "XLM-R large, fine-tuned (XTREME, Hu et al. 2020)": 0.847,
    },
    places=((Folder("wikiann_en", ("train", "dev", "test")), read),),
    kind="tagging",
    repeated={"dev": 325, "test": 283},
)
