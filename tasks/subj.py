"""SUBJ: is a sentence about a film subjective or objective?"""

from pathlib import Path

from tasks.data import Folder
from tasks.reading import label_first
from tasks.task import Splits, Task, in_folds

LABELS = {"0": "subjective", "1": "objective"}


def read(folder: Path) -> Splits:
    """Read the 10000 sentences, 5000 of each class."""
    path = folder / "subj.all"
    found = label_first(path, LABELS, "subj", "latin-1")
    return in_folds(found, f"all of {path} in 10 folds, made by a hash of the text; there is no official split")


TASK = Task(
    name="subj",
    version=1,
    title="Subjective or objective sentences, 10 folds",
    metric="accuracy",
    labels=tuple(LABELS.values()),
    licence="CC BY 4.0 according to NLTK's subjectivity",
    citation="Pang and Lee (2004). A sentimental education: sentiment analysis using subjectivity summarization. ACL",
    source="https://www.cs.cornell.edu/people/pabo/movie-review-data/",
    sizes={"all": 10000},
    published={
        "GloVe bag of words (SentEval, Conneau and Kiela 2018)": 0.912,
        "InferSent (SentEval, Conneau and Kiela 2018)": 0.924,
        "CNN-non-static (Kim 2014)": 0.934,
    },
    places=((Folder("subj", ("subj.all",)), read),),
    folds=10,
)
