"""A tokenised text file as sentences, streaming, with its progress."""

import logging
from collections.abc import Iterator
from pathlib import Path

from toolkit.errors import UsageError
from toolkit.progress import Progress
from toolkit.text.corpus import decoded, opened
from toolkit.text.vocab import BOS, EOS

logger = logging.getLogger(__name__)


def check_text(file: Path) -> None:
    """Check that there is such a file.

    Raises:
        UsageError: there is none.
    """
    if not file.is_file():
        raise UsageError(f"no file at {file}: give a text with one tokenised sentence a line")


def tokenised_lines(file: Path, progress: Progress) -> Iterator[list[str]]:
    """Yield the tokens of each line, between white space; a blank line has none.

    The first line that begins or ends with a boundary token is reported as a warning.

    Args:
        file: UTF-8 text, plain, .gz, .bz2 or .xz.
        progress: is advanced by the bytes read from the disk.

    Raises:
        DataError: the file is not UTF-8 or damaged.
    """
    position, warned = 0, False
    with opened(file) as (raw, stream):
        for number, line in enumerate(decoded(stream, file, None), 1):
            tokens = line.split()
            if not warned and not {BOS, EOS}.isdisjoint(tokens[:1] + tokens[-1:]):
                warned = True
                logger.warning(
                    "%s, line %d has %s or %s as a token: boundary tokens are added to every sentence, so remove them",
                    file,
                    number,
                    BOS,
                    EOS,
                )
            yield tokens
            progress.advance(raw.tell() - position)
            position = raw.tell()
