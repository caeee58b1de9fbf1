"""Rows of CSV, TSV and JSON-lines files, with the file and the row in every complaint."""

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.errors import DataError, UsageError, did_you_mean
from toolkit.text.corpus import OPENERS, lines

SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
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


def is_table(path: Path) -> bool:
    """Tell by the name whether a file can be read here; `.gz`, `.bz2` and `.xz` may stand behind the suffix."""
    return _suffix(path) in (*SEPARATORS, *JSON_LINES)


def rows(path: Path, columns: list[str]) -> Iterator[Row]:
    """Yield the rows of a UTF-8 file.

    Args:
        path: a file with a header row and fields parted by commas (.csv) or tabs (.tsv, .tab), quoted where they hold
            those, quotes or line ends; or with one JSON object a line (.jsonl, .ndjson).
        columns: that must be there.

    Raises:
        UsageError: the file is of another kind, or a column is not in its header (with the nearest).
        DataError: the file is empty or damaged, or a row does not fit the header.
    """
    if not is_table(path):
        known = ", ".join((*SEPARATORS, *JSON_LINES))
        raise UsageError(f"{path} is no table that can be read: its name should end in one of {known}")
    yield from _json_rows(path, columns) if _suffix(path) in JSON_LINES else _separated_rows(path, columns)


def _suffix(path: Path) -> str:
    name = path.with_suffix("") if path.suffix.lower() in OPENERS else path
    return name.suffix.lower()


def _separated_rows(path: Path, columns: list[str]) -> Iterator[Row]:
    csv.field_size_limit(FIELD_LIMIT)
    reader = csv.reader((f"{line}\n" for line in lines(path)), delimiter=SEPARATORS[_suffix(path)], strict=True)
    start = 1  # the line at which the row began
    try:
        header = next(reader, None)
        if not header:
            raise DataError(f"{path} is empty: it should begin with the names of its columns")
        _check_columns(path, columns, header)
        number = 1
        start = reader.line_num + 1
        for number, fields in enumerate(reader, 2):
            where = f"{path}, row {number}" + (f" (line {start})" if start != number else "")
            start = reader.line_num + 1
            if not fields:  # a blank line
                continue
            if len(fields) != len(header):
                advice = "put quotes around fields that hold a separator, a quote or the end of a line"
                raise DataError(f"{where}: {len(fields)} fields, but the header has {len(header)}: {advice}")
            yield Row(where, number, dict(zip(header, fields, strict=True)))
    except csv.Error as error:
        raise DataError(f"{path}, line {start}: {error}: is a quote opened there and not closed?") from None


def _check_columns(path: Path, columns: list[str], header: list[str]) -> None:
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{path} has two columns called {twice!r}: rename one")
    for name in columns:
        if name not in header:
            hint = did_you_mean(name, header)
            alone = "; it is the only one: part the fields by commas (.csv) or tabs (.tsv)" if len(header) == 1 else ""
            raise UsageError(f"{path} has no column {name!r}: {hint}{alone}")


def _json_rows(path: Path, columns: list[str]) -> Iterator[Row]:
    for number, line in enumerate(lines(path), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            values = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"{where}: no JSON ({error}): one object a line is expected") from None
        if not isinstance(values, dict):
            raise DataError(f"{where}: {type(values).__name__} instead of an object with {', '.join(columns)}")
        if number == 1:
            _check_columns(path, columns, list(values))
        yield Row(where, number, values)
