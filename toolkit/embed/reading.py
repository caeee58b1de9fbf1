"""A tokenised text file as sentences, streaming, with its progress."""

from collections.abc import Iterator
from pathlib import Path

from toolkit.errors import UsageError
from toolkit.progress import Progress
from toolkit.text.corpus import decoded, opened


def check_text(file: Path) -> None:
    """Check that there is such a file.

    Raises:
        UsageError: there is none.
    """
    if not file.is_file():
        raise UsageError(f"no file at {file}: give a text with one tokenised sentence a line")


def tokenised_lines(file: Path, progress: Progress) -> Iterator[list[str]]:
    """Yield the tokens of each line, between white space; a blank line has none.

    Args:
        file: UTF-8 text, plain, .gz, .bz2 or .xz.
        progress: is advanced by the bytes read from the disk.

    Raises:
        DataError: the file is not UTF-8 or damaged.
    """
    position = 0
    with opened(file) as (raw, stream):
        for line in decoded(stream, file, None):
            yield line.split()
            progress.advance(raw.tell() - position)
            position = raw.tell()
