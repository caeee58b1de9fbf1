"""CoLA: is a sentence grammatical English?"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from tasks.data import Archive, Folder
from tasks.reading import examples, member
from tasks.task import Splits, Task
from toolkit.errors import DataError
from toolkit.text.corpus import lines

LABELS = {"0": "unacceptable", "1": "acceptable"}
PARTS = {"train": "in_domain_train", "dev": "in_domain_dev", "test": "out_of_domain_dev"}


def read_folder(folder: Path) -> Splits:
    """Read the files of CoLA's public release."""
    paths = {part: folder / "raw" / f"{file}.tsv" for part, file in PARTS.items()}
    return _splits({part: (str(path), lines(path)) for part, path in paths.items()}, folder)


def read_glue(archive: Path) -> Splits:
    """Read the same files inside GLUE's archive."""
    names = {part: f"CoLA/original/raw/{file}.tsv" for part, file in PARTS.items()}
    return _splits({part: (f"{archive}:{name}", _member_lines(archive, name)) for part, name in names.items()}, archive)


def _splits(files: dict[str, tuple[str, Iterable[str]]], place: Path) -> Splits:
    """Make 8551, 527 and 516 sentences of lines with source, label, original mark and raw sentence."""
    parts = [examples(_rows(rows, file), LABELS, file, part, "en") for part, (file, rows) in files.items()]
    description = (
        f"the public files in {place}, Moses tokens; the test split is the out-of-domain development set (516), since "
        "the labels of the test sets are not public"
    )
    return Splits(*parts, description)


def _rows(rows: Iterable[str], file: str) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(rows, 1):
        fields = line.split("\t")
        if len(fields) != 4:
            raise DataError(f"{file}, line {number}: {len(fields)} columns, 4 expected: source, label, mark, sentence")
        yield number, fields[1], fields[3]


def _member_lines(archive: Path, name: str) -> Iterator[str]:
    with member(archive, name) as text:
        yield from (line.rstrip("\r\n") for line in text)


TASK = Task(
    name="cola",
    version=1,
    title="Corpus of Linguistic Acceptability",
    metric="matthews",
    labels=("unacceptable", "acceptable"),
    licence="none; the sentences stay with the authors of the linguistics works they are from, for research",
    citation="Warstadt, Singh and Bowman (2019). Neural network acceptability judgments. TACL",
    source="https://nyu-mll.github.io/CoLA/",
    sizes={"train": 8551, "dev": 527, "test": 516},
    published={
        "BiLSTM, GLUE's hidden test set (Wang et al. 2018)": 0.157,
        "BiLSTM with ELMo, GLUE's hidden test set (Wang et al. 2018)": 0.350,
    },
    places=(
        (Folder("cola", tuple(f"raw/{file}.tsv" for file in PARTS.values())), read_folder),
        (
            Archive(
                folder="cola",
                url="https://dl.fbaipublicfiles.com/glue/data/CoLA.zip",
                bytes=376971,
                sha256="f212fcd832b8f7b435fb991f101abf89f96b933ab400603bf198960dfc32cbff",
            ),
            read_glue,
        ),
    ),
    repeated={"dev": 6, "test": 12},
)
