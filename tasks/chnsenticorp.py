"""ChnSentiCorp, hotels: is a Chinese hotel review positive or negative?"""

import csv
import importlib.util
from pathlib import Path

from tasks.data import Folder
from tasks.reading import examples, split_by_hash
from tasks.task import Splits, Task
from toolkit.errors import DataError, UsageError
from toolkit.text.corpus import lines

LABELS = {"0": "negative", "1": "positive"}
FILE = "ChnSentiCorp_htl_all.csv"


def read(folder: Path) -> Splits:
    """Read the 7766 reviews, 5322 positive and 2444 negative, one of which is empty and left out.

    Raises:
        UsageError: the library that finds Chinese words is not installed.
    """
    if importlib.util.find_spec("rjieba") is None:
        raise UsageError("chnsenticorp needs rjieba to find Chinese words: pip install 'elmo-toolkit[zh]'")
    path = folder / FILE
    reader = csv.reader((f"{line}\n" for line in lines(path)), strict=True)
    try:
        header, *rows = reader
    except (csv.Error, ValueError) as error:
        raise DataError(f"{path}, line {reader.line_num}: {error}; fetch it again") from None
    if header != ["label", "review"] or any(len(row) != 2 for row in rows):
        raise DataError(f"{path} should have the columns label and review, and two fields a row: fetch it again")
    numbered = [(number, label, text) for number, (label, text) in enumerate(rows, 2) if text.strip()]
    description = (
        f"the {len(rows)} hotel reviews of {path}, split 80/10/10 by a hash of the text; "
        f"{len(rows) - len(numbered)} empty one is left out"
    )
    return split_by_hash(examples(numbered, LABELS, str(path), "review", "zh"), description)


TASK = Task(
    name="chnsenticorp",
    version=1,
    title="Chinese hotel reviews, two classes",
    metric="accuracy",
    labels=("negative", "positive"),
    licence="none stated",
    citation="Tan and Zhang (2008). An empirical study of sentiment analysis for Chinese documents",
    source="https://github.com/SophonPlus/ChineseNlpCorpus",
    sizes={"train": 6173, "dev": 794, "test": 798},
    places=((Folder("zh_chnsenticorp_htl", (FILE,)), read),),
)
