"""The table of scores as text: for the terminal, CSV, Markdown and LaTeX, and as a JSON document."""

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from toolkit.errors import UsageError, did_you_mean
from toolkit.runs.describe import SHARES, columns, in_display_units, number
from toolkit.runs.table import BEST, EMPTY, EQUAL, UNTESTED, Cell, Column, Row, ScoreTable

LAYOUTS = ("terminal", "csv", "markdown", "latex")
HEADER = ("MIX", "HEAD", "MODEL", "SETTINGS")
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "≈": r"$\approx$",
    "–": "--",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


@dataclass(frozen=True)
class _Style:
    """How a layout writes: what is done to a text, to the best score, and to the number of a remark."""

    escape: Callable[[str], str]
    best: Callable[[str], str]
    remark: Callable[[int], str]
    best_words: str


def latex_escaped(text: str) -> str:
    """Return a text as LaTeX shows it: its special characters escaped, line ends as blanks."""
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def markdown_escaped(text: str) -> str:
    """Return a text as Markdown shows it in a cell of a table."""
    return re.sub(r"([\\`*_\[\]<>|#~$])", r"\\\1", " ".join(text.split()))


def _plain(text: str) -> str:
    return " ".join(text.split())


TERMINAL = _Style(_plain, lambda text: f"{text} *", lambda number_: f" [{number_}]", "* the best of its column")
MARKDOWN = _Style(
    markdown_escaped,
    lambda text: f"**{text}**",
    lambda number_: f" \\[{number_}\\]",
    "**bold**: the best of its column",
)
LATEX = _Style(
    latex_escaped,
    lambda text: rf"\textbf{{{text}}}",
    lambda number_: rf"\textsuperscript{{{number_}}}",
    r"\textbf{bold}: the best of its column",
)


def table_text(table: ScoreTable, layout: str = "terminal") -> str:
    """Return the table in a layout: terminal, csv (a line a score, everything in it), markdown or latex.

    Raises:
        UsageError: there is no such layout.
    """
    check_layout(layout)
    if not table.rows and layout != "csv":
        lines = [*table.notes, "No evaluate run; `toolkit evaluate --help` shows how to make the first."]
        return "\n".join(f"% {line}" if layout == "latex" else line for line in lines)
    return {"terminal": _terminal, "csv": _csv, "markdown": _markdown, "latex": _latex}[layout](table)


def check_layout(layout: str) -> None:
    """Refuse a layout that `table_text` does not have.

    Raises:
        UsageError: there is no such layout; the message names the nearest.
    """
    if layout not in LAYOUTS:
        raise UsageError(f"no table format {layout!r}: {did_you_mean(layout, LAYOUTS)}")


def table_document(table: ScoreTable) -> dict[str, Any]:
    """Return the table as a JSON document: `columns`, `rows` and, for each pair of them, `cells`."""
    return {
        "columns": [asdict(column) for column in table.columns],
        "rows": [asdict(row) for row in table.rows],
        "cells": [[asdict(cell) for cell in row] for row in table.cells],
        "correction": f"Holm over {table.comparisons} comparisons",
        "notes": list(table.notes),
    }


def _terminal(table: ScoreTable) -> str:
    header, body, notes = _written(table, TERMINAL)
    lines = [[name.split("\n")[0] for name in header], [" ".join(name.split("\n")[1:]) for name in header]]
    return columns([*lines, *body]) + "\n\n" + "\n".join(notes)


def _markdown(table: ScoreTable) -> str:
    header, body, notes = _written(table, MARKDOWN)
    lines = [[name.replace("\n", "<br>") for name in header], ["---"] * len(header), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n\n" + "\n".join(f"- {note}" for note in notes)


def _latex(table: ScoreTable) -> str:
    header, body, notes = _written(table, LATEX)
    lines = [[name.split("\n")[0] for name in header], [" ".join(name.split("\n")[1:]) for name in header]]
    count = len(header) - len(table.columns)
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            rf"\begin{{tabular}}{{{'l' * count}{'r' * len(table.columns)}}}",
            r"\toprule",
            *(" & ".join(line) + r" \\" for line in lines),
            r"\midrule",
            *(" & ".join(line) + r" \\" for line in body),
            r"\bottomrule",
            r"\end{tabular}",
            "",
            *(note + r"\par" for note in notes),
        ]
    )


def _csv(table: ScoreTable) -> str:
    lines = [
        {
            **{name: getattr(column, name) for name in ("task", "split", "metric", "data", "examples", "n")},
            **asdict(row),
            **asdict(cell),
            "runs": " ".join(cell.runs),
        }
        for row, cells in zip(table.rows, table.cells, strict=True)
        for column, cell in zip(table.columns, cells, strict=True)
    ]
    names = ["task", "split", "metric", "data", "examples", "n", *Row.__annotations__, *Cell.__annotations__]
    return pd.DataFrame(lines, columns=names).to_csv(index=False, lineterminator="\n").rstrip("\n")


def _written(table: ScoreTable, style: _Style) -> tuple[list[str], list[list[str]], list[str]]:
    """Return header, body and notes; a header of two lines has the metric and the number of examples below."""
    with_settings = any(row.settings for row in table.rows)
    names = HEADER if with_settings else HEADER[:-1]
    header = [*names, *(_column_title(column, style) for column in table.columns)]
    numbers: dict[str, int] = {}
    body = []
    for row, cells in zip(table.rows, table.cells, strict=True):
        labels = [row.mix, row.head, row.model, row.settings][: len(names)]
        scores = [_score(cell, column, style, numbers) for cell, column in zip(cells, table.columns, strict=True)]
        body.append([*map(style.escape, labels), *scores])
    remarks = [style.escape(f"[{number_}] {text}") for text, number_ in numbers.items()]
    return header, body, [*_legend(table, style), *remarks, *map(style.escape, table.notes)]


def _column_title(column: Column, style: _Style) -> str:
    facts = [f"{column.split} {column.metric}".replace("_", " ").strip()]
    facts += [f"n = {column.n:,}"] if column.n is not None else []
    facts += [] if column.higher_is_better else ["lower is better"]
    return f"{style.escape(column.title)}\n{style.escape(', '.join(filter(None, facts)))}"


def _score(cell: Cell, column: Column, style: _Style, numbers: dict[str, int]) -> str:
    text = "–"
    if cell.value is not None:
        share = column.metric in SHARES
        text = f"{100 * cell.value:.1f}" if share else number(cell.value)
        if cell.low is not None and cell.high is not None:
            half = in_display_units(column.metric, cell.high - cell.low) / 2
            text += f" ±{half:.1f}" if share else f" ±{number(half)}"
        text += f" ({cell.seeds})"
    text = style.escape(text)
    if cell.mark == BEST:
        text = style.best(text)
    if cell.mark in (EQUAL, UNTESTED):
        text += " " + style.escape("≈" if cell.mark == EQUAL else "?")
    return text + style.remark(numbers.setdefault(cell.remark, len(numbers) + 1)) if cell.remark else text


def _legend(table: ScoreTable, style: _Style) -> Sequence[str]:
    """Return what numbers and marks mean, as far as they occur."""
    cells = [cell for row in table.cells for cell in row if cell.mark != EMPTY]
    marks = {cell.mark for cell in cells}
    lines = []
    if cells:
        interval = (
            "Means over the seeds (their number in brackets) ± half of the 95 % interval, over other test examples "
            "and, where the seeds differ, other seeds."
        )
        if any(column.metric in SHARES for column in table.columns):
            interval += " Shares and correlations are times a hundred."
        lines.append(style.escape(interval))
    if BEST in marks:
        tests = (
            f"; ≈ not significantly different from it, without a mark significantly worse (paired tests on the same "
            f"examples at 0.05, with Holm's correction over the {table.comparisons} comparisons of the table)"
        )
        words = style.escape(tests) if table.comparisons else ""
        untested = style.escape("; ? not tested") if UNTESTED in marks else ""
        lines.append(f"{style.best_words}{words}{untested}.")
    return lines
