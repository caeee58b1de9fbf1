"""Rows of CSV, TSV and JSON-lines files, with the file and the row in every complaint."""

import csv
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.quoting import quoting_works_out
from toolkit.errors import MANY, DataError, UsageError, did_you_mean
from toolkit.text.corpus import OPENERS, lines

logger = logging.getLogger(__name__)

SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
OTHERS = (";", "\t", ",", "|")  # separators that spreadsheets write into files of any name
NAMES = {",": "comma", "\t": "tab", ";": "semicolon", "|": "vertical bar"}
JSON_LINES = (".jsonl", ".ndjson")
FIELD_LIMIT = 10_000_000  # characters; a quote that is never closed runs into it or into the end of the file


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        where: file and row, for messages; a header is row 1, as spreadsheets count.
        number: of the row.
        values: by column; texts, of JSON lines anything.
    """

    where: str
    number: int
    values: Mapping[str, Any]


@dataclass(frozen=True)
class _Dialect:
    """How the fields of a file are separated.

    Attributes:
        separator: one character.
        quotes: whether quotes around a field are not part of it.
        skipped: lines before the header: 1 for `sep=;`.
    """

    separator: str
    quotes: bool
    skipped: int

    def reader(self, found: Iterable[str]) -> Any:
        """Return `csv.reader` of lines without their ends."""
        quoting = csv.QUOTE_MINIMAL if self.quotes else csv.QUOTE_NONE
        return csv.reader((f"{line}\n" for line in found), delimiter=self.separator, quoting=quoting, strict=True)


def is_table(path: Path) -> bool:
    """Return whether the name is that of a file that can be read here; `.gz`, `.bz2` and `.xz` may follow."""
    return suffix_of(path) in (*SEPARATORS, *JSON_LINES)


def suffix_of(path: Path) -> str:
    """Return the suffix in lower case, without that of a compression."""
    name = path.with_suffix("") if path.suffix.lower() in OPENERS else path
    return name.suffix.lower()


def rows(path: Path, columns: list[str], quotes: bool | None = None) -> Iterator[Row]:
    """Yield the rows of a UTF-8 file; it is streamed, and the number of rows is logged at the end.

    Args:
        path: a file with a header row and fields separated by commas (.csv) or tabs (.tsv, .tab), or by another of the
            usual separators if only that gives the columns; or with one JSON object per line (.jsonl, .ndjson).
        columns: those that must be present; other columns may have no name.
        quotes: whether quotes around a field are CSV's and not text. None: for .csv always, for tabs only if that
            works out for the whole file (`quoting_works_out`). Without quoting each line is a row.

    Raises:
        UsageError: the file is of another kind, or a column is not in its header (with the nearest).
        DataError: the file is empty or damaged, or a row does not fit the header.
    """
    if not is_table(path):
        known = ", ".join((*SEPARATORS, *JSON_LINES))
        raise UsageError(f"{path} is no table that can be read: its name should end in one of {known}")
    yield from _json_rows(path, columns) if suffix_of(path) in JSON_LINES else _separated_rows(path, columns, quotes)


def _separated_rows(path: Path, columns: list[str], quotes: bool | None) -> Iterator[Row]:
    csv.field_size_limit(FIELD_LIMIT)
    dialect = _dialect(path, columns, quotes)
    found = lines(path)
    for _ in range(dialect.skipped):
        next(found)
    reader = dialect.reader(found)
    start = 1 + dialect.skipped  # the line at which the row began
    read = over_lines = 0
    longest = (1, "")
    try:
        header = next(reader, None)
        if not header:
            raise DataError(f"{path} is empty: it should begin with the names of its columns")
        _check_columns(path, columns, header)
        _report_unread(path, columns, header)
        start = dialect.skipped + reader.line_num + 1
        for number, fields in enumerate(reader, 2):
            where = f"{path}, row {number}" + (f" (line {start})" if start != number else "")
            length = dialect.skipped + reader.line_num + 1 - start
            start += length
            if not fields:  # a blank line
                continue
            if len(fields) != len(header):
                raise DataError(f"{where}: {len(fields)} fields, but the header has {len(header)}: {_mend(dialect)}")
            read += 1
            over_lines += length > 1
            longest = max(longest, (length, where), key=lambda pair: pair[0])
            yield Row(where, number, {name: value for name, value in zip(header, fields, strict=True) if name.strip()})
    except csv.Error as error:
        raise DataError(
            f"{path}, line {start}: {error}: is a quote opened there and not closed? If quotes are text in this "
            "file: --no-quotes"
        ) from None
    how = "quotes around fields are not text" if dialect.quotes else "quotes are text"
    logger.info("%s: %d rows read, separated by %ss; %s", path, read, NAMES.get(dialect.separator, "other"), how)
    if over_lines:
        message = "%d rows run over several lines inside quotes, the longest over %d (%s); if not meant: --no-quotes"
        logger.info(message, over_lines, *longest)


def _mend(dialect: _Dialect) -> str:
    if dialect.quotes:
        return "put quotes around fields that hold a separator, a quote or the end of a line, or read with --no-quotes"
    return "take separators and line ends out of the fields, or read with --quotes if fields that hold them are quoted"


def _dialect(path: Path, columns: list[str], quotes: bool | None) -> _Dialect:
    """Decide how a file is read: by `sep=`, by its name, or by the separator that gives the wanted columns."""
    found = lines(path)
    first = next(found, "")
    if first.lower().startswith("sep=") and len(first) == len("sep=") + 1:
        separator, skipped = first[-1], 1
    else:
        separator, skipped = _separator(path, first, columns), 0
    if quotes is None:
        tabs = separator == "\t"
        quotes = not tabs or quoting_works_out(lines(path), separator, skipped)
    return _Dialect(separator, quotes, skipped)


def _separator(path: Path, first: str, columns: list[str]) -> str:
    usual = SEPARATORS[suffix_of(path)]
    for separator in (usual, *OTHERS):
        try:
            header = next(_Dialect(separator, True, 0).reader([first]), [])
        except csv.Error:  # a name over several lines: the reader of all lines says what is wrong
            continue
        if set(columns) <= set(header):
            return separator
    return usual


def _check_columns(path: Path, columns: list[str], header: list[str]) -> None:
    for name in columns:
        if header.count(name) > 1:
            raise DataError(f"{path} has two columns called {name!r}: rename one")
        if name not in header:
            hint = did_you_mean(name, [name for name in header if name.strip()])
            alone = "; it is the only one: separate the fields by commas (.csv) or tabs (.tsv)"
            raise UsageError(f"{path} has no column {name!r}: {hint}{alone if len(header) == 1 else ''}")


def _report_unread(path: Path, columns: list[str], header: list[str]) -> None:
    """Log the columns that are left out, among which the second text of a pair may be."""
    unread = [name for name in header if name.strip() and name not in columns]
    if unread:
        more = f" and {len(unread) - MANY} more" if len(unread) > MANY else ""
        logger.info("%s: columns that are not read: %s%s", path, ", ".join(map(repr, unread[:MANY])), more)


def _json_rows(path: Path, columns: list[str]) -> Iterator[Row]:
    read = 0
    for number, line in enumerate(lines(path), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: no JSON ({error}): one object per line is expected") from None
        if not isinstance(values, dict):
            raise DataError(f"{where}: {type(values).__name__} instead of an object with {', '.join(columns)}")
        if not read:
            _check_columns(path, columns, list(values))
            _report_unread(path, columns, list(values))
        read += 1
        yield Row(where, number, values)
    logger.info("%s: %d rows read", path, read)
