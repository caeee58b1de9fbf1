"""Whether quotes in a file of tab-separated fields are CSV's quoting or text."""

import csv
import io
import itertools
import re
from collections.abc import Iterable

QUOTED = r'"[^"]*(?:""[^"]*)*"'
LONGEST = 1_000_000  # characters of one row; a stray quote would gather the rest of a file


def quoting_works_out(lines: Iterable[str], separator: str, skipped: int = 0) -> bool:
    """Return whether reading quotes as CSV does works out for a whole file that has any.

    It does if every field that holds a quote is enclosed in quotes, with those inside doubled, all rows have as many
    fields as the first, and no field that runs over lines holds a separator: such a field is nearly always several
    rows between two stray quotes, as in

        0<TAB>"Stop" was all he said
        1<TAB>he never said "stop"

    Args:
        lines: of the file, without their ends; they are streamed, a row at most is held.
        separator: between fields, one character.
        skipped: lines before the first row.
    """
    field = rf"(?:{QUOTED}|[^\"{re.escape(separator)}]*)"
    row = re.compile(rf"{field}(?:{re.escape(separator)}{field})*")
    width, any_quote = 0, False
    held, quotes = "", 0
    for line in itertools.islice(lines, skipped, None):
        held += line + "\n"
        quotes += line.count('"')
        if quotes % 2 and len(held) <= LONGEST:  # a field is open
            continue
        if held != "\n":
            if quotes % 2 or not row.fullmatch(held, 0, len(held) - 1):
                return False
            fields = next(csv.reader(io.StringIO(held, newline=""), delimiter=separator))
            width = width or len(fields)
            if len(fields) != width or any("\n" in text and separator in text for text in fields):
                return False
            any_quote = any_quote or quotes > 0
        held, quotes = "", 0
    return any_quote and not held
