"""CR: is a sentence of a product review positive or negative?"""

from pathlib import Path

from tasks.data import Folder
from tasks.reading import examples, label_first_rows
from tasks.task import Splits, Task, in_folds

LABELS = {"0": "negative", "1": "positive"}


def read(folder: Path) -> Splits:
    """Read the 3775 sentences, 1368 negative and 2407 positive, four of which are empty and left out."""
    path = folder / "custrev.all"
    rows = [(number, label, text) for number, label, text in label_first_rows(path) if text.strip()]
    found = examples(rows, LABELS, str(path), "cr")
    description = (
        f"all of {path} but its four empty sentences, in 10 folds, made by a hash of the text; there is no "
        "official split"
    )
    return in_folds(found, description)


TASK = Task(
    name="cr",
    version=1,
    title="Customer reviews of products, two classes, 10 folds",
    metric="accuracy",
    labels=tuple(LABELS.values()),
    licence="CC BY 4.0 according to NLTK's product_reviews_1",
    citation="Hu and Liu (2004). Mining and summarizing customer reviews. KDD",
    source="https://www.cs.uic.edu/~liub/FBS/sentiment-analysis.html",
    sizes={"all": 3771},
    published={
        "GloVe bag of words (SentEval, Conneau and Kiela 2018)": 0.787,
        "InferSent (SentEval, Conneau and Kiela 2018)": 0.863,
        "CNN-non-static (Kim 2014)": 0.843,
    },
    places=((Folder("cr", ("custrev.all",)), read),),
    folds=10,
    repeated={},
)
