"""SST-5: how positive is a sentence of a film review, in five steps?"""

from pathlib import Path

from tasks.data import Folder
from tasks.reading import label_first
from tasks.task import Splits, Task

LABELS = {"0": "very negative", "1": "negative", "2": "neutral", "3": "positive", "4": "very positive"}


def read(folder: Path) -> Splits:
    """Read the splits of 8544, 1101 and 2210 sentences, as published."""
    parts = (label_first(folder / f"stsa.fine.{part}", LABELS, part) for part in ("train", "dev", "test"))
    return Splits(*parts, f"the published splits in {folder}, sentences only")


TASK = Task(
    name="sst5",
    version=1,
    title="Stanford Sentiment Treebank, five classes, sentences",
    metric="accuracy",
    labels=tuple(LABELS.values()),
    licence="none stated (Stanford, for research)",
    citation="Socher et al. (2013). Recursive deep models for semantic compositionality over a sentiment treebank",
    source="https://nlp.stanford.edu/sentiment/",
    sizes={"train": 8544, "dev": 1101, "test": 2210},
    published={
        "GloVe bag of words, logistic regression (SentEval, Conneau and Kiela 2018)": 0.447,
        "RNTN, trained on phrases too (Socher et al. 2013)": 0.457,
        "CNN-non-static, trained on phrases too (Kim 2014)": 0.480,
        "BCN (McCann et al. 2017 as in Peters et al. 2018)": 0.514,
        "BCN with ELMo (Peters et al. 2018)": 0.547,
    },
    places=((Folder("sst5", ("stsa.fine.train", "stsa.fine.dev", "stsa.fine.test")), read),),
    repeated={"dev": 2, "test": 2},
)
