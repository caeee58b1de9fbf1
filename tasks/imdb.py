"""IMDb: is a film review positive or negative?"""

import re
from collections.abc import Iterator
from pathlib import Path

from tasks import movie_reviews
from tasks.data import Archive
from tasks.reading import carved, examples, split_by_hash, tar_members
from tasks.task import Example, Splits, Task

LABELS = {"0": "negative", "1": "positive"}
DEV_SHARE = 0.1  # of the training reviews
REVIEW = re.compile(r"aclImdb/(?P<part>train|test)/(?P<label>neg|pos)/(?P<number>\d+)_\d+\.txt")
BREAK = re.compile(r"<br\s*/?>")


def read_archive(archive: Path) -> Splits:
    """Read the published 25,000 and 25,000 reviews; dev is a tenth of train, chosen by a hash of the text."""
    parts: dict[str, list[Example]] = {"train": [], "test": []}
    for name, text in tar_members(archive):
        match = REVIEW.fullmatch(name)
        if match:
            label = "1" if match["label"] == "pos" else "0"
            rows = [(int(match["number"]), label, _plain(text))]
            prefix = f"{match['part']}-{match['label']}"
            parts[match["part"]] += examples(rows, LABELS, f"{archive}:{name}", prefix, "en")
    for part in parts.values():
        part.sort(key=lambda example: example.id)
    rest, dev = carved(parts["train"], DEV_SHARE)
    description = (
        f"the published reviews in {archive}, Moses tokens; dev is {len(dev)} of the 25,000 training reviews, chosen "
        "by a hash of the text"
    )
    return Splits(rest, dev, parts["test"], description)


def read_package(path: Path) -> Splits:
    """Split the 25,000 training reviews 80/10/10, for want of the test reviews."""
    found = examples(_package_rows(path), LABELS, str(path), "package", "en")
    description = (
        f"the 25,000 published training reviews, from {path}, split 80/10/10 by a hash of the text; for the published "
        "test reviews fetch aclImdb_v1.tar.gz (toolkit data list)"
    )
    return split_by_hash(found, description)


def _package_rows(path: Path) -> Iterator[tuple[int, str, str]]:
    for number, text, label in movie_reviews.rows(path, "imdb"):
        yield number, label, _plain(text)


def _plain(text: str) -> str:
    return BREAK.sub(" ", text)


TASK = Task(
    name="imdb",
    version=1,
    title="IMDb film reviews, two classes",
    metric="accuracy",
    labels=("negative", "positive"),
    licence="none stated (Stanford, for research); the package movie-reviews says MIT",
    citation="Maas et al. (2011). Learning word vectors for sentiment analysis. ACL",
    source="https://ai.stanford.edu/~amaas/data/sentiment/",
    sizes={"train": 22500, "dev": 2500, "test": 25000},
    published={
        "word vectors and bag of words, unlabelled reviews too (Maas et al. 2011)": 0.8889,
        "BCN with CoVe (McCann et al. 2017)": 0.918,
        "ULMFiT (Howard and Ruder 2018)": 0.954,
    },
    places=(
        (
            Archive(
                folder="imdb",
                url="https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
                bytes=84125825,
                sha256="c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
            ),
            read_archive,
        ),
        (movie_reviews.FILE, read_package),
    ),
)
