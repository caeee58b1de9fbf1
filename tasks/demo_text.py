"""The text that the demonstration pretrains on, made from pip packages alone."""

import html
import re
from collections.abc import Iterator
from pathlib import Path

from tasks import movie_reviews
from toolkit.errors import DataError
from toolkit.files import atomic_folder
from toolkit.text import wordnet

NAME = "demo-text"
LAYOUT = 1  # to be raised when the same packages would give other files
BREAK = re.compile(r"(?:<br\s*/?>\s*)+", re.IGNORECASE)
FILES = ("imdb.txt", "wordnet.txt", "SOURCE.txt")
TITLE = "IMDb reviews and WordNet's example sentences, as running text"
LICENCE = "MIT (package movie-reviews) and the WordNet 3.0 licence (package wn)"


def demo_text(cache: Path) -> Path:
    """Return the folder of the text, made in the cache where it is not there yet.

    `imdb.txt` holds a paragraph a line and a blank line between reviews, `wordnet.txt` an example sentence a line. The
    Rotten-Tomatoes rows of movie-reviews are left out: most test sentences of SST-2 stand among them.

    Raises:
        DataError: a package is not installed, or its files are not those whose checksums are known.
    """
    folder = cache / NAME
    note = (
        f"imdb.txt: the IMDb rows of {movie_reviews.FILE.file} (package {movie_reviews.FILE.distribution}, sha256\n"
        f"{movie_reviews.FILE.sha256}); HTML line breaks part paragraphs.\n"
        f"wordnet.txt: the example sentences of WordNet 3.0 (package {wordnet.DISTRIBUTION}=={wordnet.VERSION}).\n"
        f"Layout {LAYOUT}. Licence: {LICENCE}.\n"
    )
    if is_there(folder) and (folder / "SOURCE.txt").read_text(encoding="utf-8") == note:
        return folder
    source = movie_reviews.FILE.find(None, cache) or movie_reviews.FILE.obtain(cache)
    with atomic_folder(folder) as temporary:
        with (temporary / "imdb.txt").open("w", encoding="utf-8", newline="\n") as file:
            for review in _reviews(source):
                file.write("\n".join(review) + "\n\n")
        sentences = "\n".join(wordnet.example_lines()) + "\n"
        (temporary / "wordnet.txt").write_text(sentences, encoding="utf-8", newline="\n")
        (temporary / "SOURCE.txt").write_text(note, encoding="utf-8")
    return folder


def is_there(folder: Path) -> bool:
    """Whether a folder holds the files of the text."""
    return all((folder / name).is_file() for name in FILES)


def _reviews(source: Path) -> Iterator[list[str]]:
    found = False
    for _, text, _ in movie_reviews.rows(source, "imdb"):
        paragraphs = [" ".join(html.unescape(part).split()) for part in BREAK.split(text)]
        yield [paragraph for paragraph in paragraphs if paragraph]
        found = True
    if not found:
        raise DataError(f"{source} holds no IMDb rows: install the package movie-reviews again")
