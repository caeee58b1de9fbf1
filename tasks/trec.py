"""TREC: what kind of answer does a question ask for, in six classes?"""

from pathlib import Path

from tasks.data import Archive, Archives, Folder
from tasks.reading import carved, examples, label_first_rows
from tasks.task import Splits, Task

LABELS = {
    "ABBR": "abbreviation",
    "DESC": "description",
    "ENTY": "entity",
    "HUM": "human",
    "LOC": "location",
    "NUM": "number",
}
DEV_SHARE = 0.1  # of the training questions
ADDRESS = "https://cogcomp.seas.upenn.edu/Data/QA/QC"


def read_folder(folder: Path) -> Splits:
    """Read the files as they are called in a data folder."""
    return _read(folder / "raw" / "TREC.train", folder / "raw" / "TREC.test")


def read_download(folder: Path) -> Splits:
    """Read the files as they are called at their address."""
    return _read(folder / "train_5500.label", folder / "TREC_10.label")


def _read(train: Path, test: Path) -> Splits:
    """Read 5452 and 500 questions as "COARSE:fine question"; train is in Latin-1. Only the coarse class counts.

    Dev is a tenth of the training questions, chosen by a hash: equal questions stay together.
    """
    parts = []
    for path, prefix in ((train, "train"), (test, "test")):
        rows = ((number, label.partition(":")[0], text) for number, label, text in label_first_rows(path, "latin-1"))
        parts.append(examples(rows, LABELS, str(path), prefix))
    rest, dev = carved(parts[0], DEV_SHARE)
    description = (
        f"the published 5452 and 500 questions {train} and {test}; dev is {len(dev)} of the training questions, "
        "chosen by a hash of the question"
    )
    return Splits(rest, dev, parts[1], description)


TASK = Task(
    name="trec",
    version=1,
    title="TREC questions, six classes of answers",
    metric="accuracy",
    labels=tuple(LABELS.values()),
    licence="none stated",
    citation="Li and Roth (2002). Learning question classifiers. COLING",
    source="https://cogcomp.seas.upenn.edu/Data/QA/QC/",
    sizes={"train": 4925, "dev": 527, "test": 500},
    published={
        "GloVe bag of words (SentEval, Conneau and Kiela 2018)": 0.830,
        "InferSent (SentEval, Conneau and Kiela 2018)": 0.882,
        "CNN-non-static (Kim 2014)": 0.936,
        "BCN with CoVe (McCann et al. 2017)": 0.958,
    },
    places=(
        (Folder("trec", ("raw/TREC.train", "raw/TREC.test")), read_folder),
        (
            Archives(
                (
                    Archive(
                        folder="trec",
                        url=f"{ADDRESS}/train_5500.label",
                        bytes=335858,
                        sha256="9e4c8bdcaffb96ed61041bd64b564183d52793a8e91d84fc3a8646885f466ec3",
                    ),
                    Archive(
                        folder="trec",
                        url=f"{ADDRESS}/TREC_10.label",
                        bytes=23354,
                        sha256="033f22c028c2bbba9ca682f68ffe204dc1aa6e1cf35dd6207f2d4ca67f0d0e8e",
                    ),
                )
            ),
            read_download,
        ),
    ),
    repeated={"test": 9},
)
