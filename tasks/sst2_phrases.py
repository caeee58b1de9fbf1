"""SST-2 with the labelled phrases of the training trees as examples; dev and test are the sentences of `sst2`."""

from pathlib import Path

from tasks import sst2, sst5, sst5_subtrees
from tasks.data import Folder
from tasks.task import Example, Splits, Task

CLASSES = dict(zip(sst5.LABELS.values(), ("negative", "negative", "", "positive", "positive"), strict=True))


def read(folder: Path) -> Splits:
    """Read the trees, with two classes: neutral phrases and sentences are left out.

    A phrase that occurs with several labels of one class is one example.
    """
    found = sst5_subtrees.read(folder)
    train, dev, test = (_two_classes(part) for part in (found.train, found.dev, found.test))
    train = list({(example.tokens, example.label): example for example in train}.values())
    return Splits(train, dev, test, f"{found.description}; neutral ones left out, {len(train)} phrases remain")


def _two_classes(part: list[Example]) -> list[Example]:
    return [Example(e.id, e.tokens, label) for e in part if (label := CLASSES[e.label])]


TASK = Task(
    name="sst2_phrases",
    version=1,
    title="Stanford Sentiment Treebank, two classes, trained on phrases too",
    metric="accuracy",
    labels=sst2.TASK.labels,
    licence=sst2.TASK.licence,
    citation=sst2.TASK.citation,
    source=sst2.TASK.source,
    sizes={"train": 77199, "dev": 872, "test": 1821},
    published=sst2.TASK.published,
    places=((Folder("sst_trees", ("train.txt", "dev.txt", "test.txt")), read),),
)
