"""WiC: does a word mean the same in two sentences?"""

from pathlib import Path

from tasks.data import Folder
from tasks.task import Example, Splits, Task
from toolkit.errors import DataError
from toolkit.text.corpus import lines

LABELS = {"F": "different", "T": "same"}
PARTS = ("train", "dev", "test")
FILES = tuple(f"{part}/{part}.{kind}.txt" for part in PARTS for kind in ("data", "gold"))


def read(folder: Path) -> Splits:
    """Read the splits of 5428, 638 and 1400 pairs, as published; half of each is "same"."""
    parts = (_part(folder / part / f"{part}.data.txt", folder / part / f"{part}.gold.txt", part) for part in PARTS)
    return Splits(*parts, f"the published splits in {folder}")


def _part(data: Path, gold: Path, prefix: str) -> list[Example]:
    answers = list(lines(gold))
    rows = list(lines(data))
    if len(rows) != len(answers):
        raise DataError(f"{data} has {len(rows)} lines, {gold} {len(answers)}: they do not belong together")
    found = []
    for number, (row, answer) in enumerate(zip(rows, answers, strict=True), 1):
        try:
            _, _, indices, first, second = row.split("\t")
            at = tuple(int(index) for index in indices.split("-"))
            label = LABELS[answer.strip()]
            tokens = tuple(first.split()), tuple(second.split())
            _ = tokens[0][at[0]], tokens[1][at[1]]
        except (ValueError, KeyError, IndexError) as error:
            raise DataError(f"{data}, line {number}: no pair with two positions and a gold T or F ({error})") from None
        found.append(Example(f"{prefix}-{number}", tokens[0], label, second=tokens[1], positions=(at[0], at[1])))
    return found


TASK = Task(
    name="wic",
    version=1,
    title="Word in Context: one meaning or two",
    metric="accuracy",
    labels=("different", "same"),
    licence="CC BY-NC 4.0",
    citation="Pilehvar and Camacho-Collados (2019). WiC: the Word-in-Context dataset. NAACL",
    source="https://pilehvar.github.io/wic/",
    sizes={"train": 5428, "dev": 638, "test": 1400},
    published={
        "sentence bag of words (Pilehvar and Camacho-Collados 2019)": 0.587,
        "ELMo (Pilehvar and Camacho-Collados 2019)": 0.577,
        "Context2vec (Pilehvar and Camacho-Collados 2019)": 0.593,
        "BERT-large (Pilehvar and Camacho-Collados 2019)": 0.655,
    },
    places=((Folder("wic", FILES), read),),
    kind="pair",
)
