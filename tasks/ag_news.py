"""AG News: is a news item about the world, sports, business or technology?"""

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from tasks.data import Archive, Folder
from tasks.reading import carved, examples, split_by_hash, tar_members
from tasks.task import Example, Splits, Task
from toolkit.errors import DataError
from toolkit.text.corpus import lines

LABELS = {"1": "World", "2": "Sports", "3": "Business", "4": "Sci/Tech"}
DEV_SHARE = 0.05  # of the 120,000 training rows


def read_test_rows(folder: Path) -> Splits:
    """Split the 7600 rows of the published test file 80/10/10, for want of the training rows."""
    path = folder / "test.csv"
    found = _examples((f"{line}\n" for line in lines(path)), str(path), "test")
    return split_by_hash(
        found,
        f"the {len(found)} rows of the published test file {path}, split 80/10/10 by a hash of the text: scores do not "
        "compare with published ones, which stand on 120,000 training rows",
    )


def read_archive(archive: Path) -> Splits:
    """Read the 120,000 and 7600 published rows; dev is a twentieth of train, chosen by a hash of the text."""
    files = {Path(name).name: text for name, text in tar_members(archive)}
    if not {"train.csv", "test.csv"} <= set(files):
        raise DataError(f"{archive} lacks train.csv or test.csv: it is not the published archive")
    parts = [_examples(io.StringIO(files[f"{part}.csv"]), f"{archive}:{part}.csv", part) for part in ("train", "test")]
    rest, dev = carved(parts[0], DEV_SHARE)
    description = f"the published rows in {archive}; dev is {len(dev)} training rows, chosen by a hash of the text"
    return Splits(rest, dev, parts[1], description)


def _examples(rows: Iterable[str], file: str, prefix: str) -> list[Example]:
    return examples(_rows(rows, file), LABELS, file, prefix, "en")


def _rows(rows: Iterable[str], file: str) -> Iterator[tuple[int, str, str]]:
    """Yield row number, class digit, and title and description; a backslash stands for the end of a line."""
    reader = csv.reader(rows, strict=True)
    try:
        for number, row in enumerate(reader, 1):
            if len(row) != 3:
                raise DataError(f"{file}, row {number}: {len(row)} columns, 3 expected: class, title, description")
            yield number, row[0], f"{row[1]} {row[2]}".replace("\\", " ")
    except csv.Error as error:
        raise DataError(f"{file}, line {reader.line_num}: {error}; fetch it again") from None


TASK = Task(
    name="ag_news",
    version=1,
    title="AG's news topics, four classes",
    metric="accuracy",
    labels=tuple(LABELS.values()),
    licence="for research and any other non-commercial activity (its readme)",
    citation="Zhang, Zhao and LeCun (2015). Character-level convolutional networks for text classification. NIPS",
    source="http://groups.di.unipi.it/~gulli/AG_corpus_of_news_articles.html",
    sizes={"train": 6092, "dev": 754, "test": 754},
    published={
        "n-grams TF-IDF, 120,000 training rows (Zhang et al. 2015)": 0.9236,
        "fastText with bigrams, 120,000 training rows (Joulin et al. 2017)": 0.925,
        "ULMFiT, 120,000 training rows (Howard and Ruder 2018)": 0.9499,
    },
    places=(
        (Folder("ag_news", ("test.csv",)), read_test_rows),
        (
            Archive(
                folder="ag_news",
                url="https://drive.google.com/uc?export=download&id=0Bz8a_Dbh9QhbUDNpeUdjb0wxRms",
                bytes=11784327,
                sha256="4e2fc37d369e6e317a8b62d0d2f11d379f8c3dde60c07c35a46b069a246498ad",
                name="ag_news_csv.tar.gz",
            ),
            read_archive,
        ),
    ),
)
