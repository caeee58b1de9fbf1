"""SST-2: is a sentence of a film review positive or negative?"""

from collections.abc import Iterator
from pathlib import Path

from tasks.data import Archive, Folder
from tasks.reading import carved, examples, label_first, member
from tasks.task import Splits, Task

LABELS = {"0": "negative", "1": "positive"}
GLUE_DEV_SHARE = 0.03  # of the training phrases


def read_sentences(folder: Path) -> Splits:
    """Read the sentence-level splits of 6920, 872 and 1821 sentences, as published."""
    train, dev, test = (label_first(folder / f"stsa.binary.{part}", LABELS, part) for part in ("train", "dev", "test"))
    seen = {example.tokens for example in train}
    twice = sum(example.tokens in seen for example in test)
    description = f"the published sentence-level splits in {folder}; {twice} test sentences stand in train too"
    return Splits(train, dev, test, description)


def read_glue(archive: Path) -> Splits:
    """Read GLUE's archive without unpacking it.

    The labels of GLUE's test set are not public, so its dev set is the test split here, and the dev split is carved out
    of the training phrases by a hash of each phrase: equal phrases stay together. Phrases of the test split are
    dropped from both.
    """
    train = examples(_rows(archive, "train"), LABELS, f"{archive}:train.tsv", "glue-train")
    test = examples(_rows(archive, "dev"), LABELS, f"{archive}:dev.tsv", "glue-dev")
    held_out = {example.tokens for example in test}
    kept = [example for example in train if example.tokens not in held_out]
    return Splits(
        *carved(kept, GLUE_DEV_SHARE),
        test,
        f"GLUE's archive {archive}: its dev set is the test split (the labels of its test set are not public), the dev "
        f"split is {100 * GLUE_DEV_SHARE:.0f} % of the training phrases, chosen by a hash of the phrase; "
        f"{len(train) - len(kept)} training phrases that equal a test sentence are left out",
    )


def _rows(archive: Path, part: str) -> Iterator[tuple[int, str, str]]:
    with member(archive, f"SST-2/{part}.tsv") as text:
        for number, line in enumerate(text, 1):
            sentence, _, label = line.rstrip("\r\n").rpartition("\t")
            if number > 1:  # behind the header
                yield number, label, sentence


TASK = Task(
    name="sst2",
    version=1,
    title="Stanford Sentiment Treebank, two classes, sentences",
    metric="accuracy",
    labels=("negative", "positive"),
    licence="none stated (Stanford, for research)",
    citation="Socher et al. (2013). Recursive deep models for semantic compositionality over a sentiment treebank",
    source="https://nlp.stanford.edu/sentiment/",
    sizes={"train": 6920, "dev": 872, "test": 1821},
    published={
        "GloVe bag of words, logistic regression, trained on phrases too (SentEval, Conneau and Kiela 2018)": 0.803,
        "RNTN, trained on phrases too (Socher et al. 2013)": 0.854,
        "CNN-non-static, trained on phrases too (Kim 2014)": 0.872,
        "BiLSTM, trained on phrases too (Tai et al. 2015)": 0.875,
    },
    places=(
        (Folder("sst2", ("stsa.binary.train", "stsa.binary.dev", "stsa.binary.test")), read_sentences),
        (
            Archive(
                folder="sst2",
                url="https://dl.fbaipublicfiles.com/glue/data/SST-2.zip",
                bytes=7439277,
                sha256="d67e16fb55739c1b32cdce9877596db1c127dc322d93c082281f64057c16deaa",
            ),
            read_glue,
        ),
    ),
    repeated={"test": 2},
)
