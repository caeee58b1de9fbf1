"""MR: is a snippet of a film review positive or negative?"""

from pathlib import Path

from tasks.data import Folder
from tasks.reading import label_first
from tasks.task import Splits, Task, in_folds

LABELS = {"0": "negative", "1": "positive"}


def read(folder: Path) -> Splits:
    """Read the 10662 snippets, 5331 of each class."""
    path = folder / "rt-polarity.all"
    found = label_first(path, LABELS, "mr", "latin-1")
    return in_folds(found, f"all of {path} in 10 folds, made by a hash of the text; there is no official split")


TASK = Task(
    name="mr",
    version=1,
    title="Movie Review snippets, two classes, 10 folds",
    metric="accuracy",
    labels=tuple(LABELS.values()),
    licence="CC BY 4.0 according to NLTK's sentence_polarity",
    citation="Pang and Lee (2005). Seeing stars: exploiting class relationships for sentiment categorization. ACL",
    source="https://www.cs.cornell.edu/people/pabo/movie-review-data/",
    sizes={"all": 10662},
    published={
        "GloVe bag of words (SentEval, Conneau and Kiela 2018)": 0.774,
        "InferSent (SentEval, Conneau and Kiela 2018)": 0.811,
        "CNN-non-static (Kim 2014)": 0.815,
    },
    places=((Folder("mr", ("rt-polarity.all",)), read),),
    folds=10,
)
