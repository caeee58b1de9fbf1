"""Small parts that several pages share: charts with their SVG, tables with their CSV, badges, escaped text."""

import re
from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.charts import to_svg
from toolkit.runs import schema
from toolkit.runs.reader import RunSummary

STATUS_COLORS = {
    schema.RUNNING: "blue",
    schema.DONE: "green",
    schema.STOPPED: "gray",
    schema.KILLED: "orange",
    schema.STALLED: "orange",
    schema.CRASHED: "red",
    schema.FAILED: "red",
    schema.UNREADABLE: "red",
}
STATUS_MEANING = {
    schema.RUNNING: "its process is alive and writes",
    schema.DONE: "finished",
    schema.STOPPED: "ended by Ctrl-C",
    schema.KILLED: "ended by a termination signal",
    schema.STALLED: "no sign of life for five of its heartbeats",
    schema.CRASHED: "its process is gone without a word",
    schema.FAILED: "ended by an error; see its log",
    schema.UNREADABLE: "the folder cannot be read as a run",
}
MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|$:~&^=@/])")


def escape(text: str) -> str:
    """Return text that Markdown shows as it stands: no formatting, no directive, no link, no HTML, no formula."""
    return MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def heading(title: str, caption: str) -> None:
    """Open a page or a part of one with its question and how to read the answer."""
    st.header(title, anchor=False)
    st.caption(caption)


def section(title: str, caption: str = "") -> None:
    """Open a part of a page."""
    st.subheader(title, anchor=False)
    if caption:
        st.caption(caption)


def status_badge(status: str) -> None:
    """Show a run's status with what it means on hover."""
    st.badge(status, color=STATUS_COLORS.get(status, "gray"), help=STATUS_MEANING.get(status, ""))


def status_column() -> Any:
    """Return how a table shows a status: as the badges do."""
    return st.column_config.MultiselectColumn(
        options=list(STATUS_COLORS), color=list(STATUS_COLORS.values()), width=110
    )


def chart(drawing: Any, title: str, key: str) -> None:
    """Show a chart with its name for screen readers and a button that saves it as SVG."""
    with st.container(gap="xxsmall", horizontal_alignment="right"):
        st.altair_chart(drawing, alt=title, key=f"chart-{key}")
        _download("SVG", lambda: to_svg(drawing, title), f"{key}.svg", "image/svg+xml", f"As a vector picture: {title}")


def table(frame: pd.DataFrame, title: str, name: str, **options: Any) -> Any:
    """Show a table with its name for screen readers and a button that saves it as CSV; return its selection.

    Args:
        frame: the table; its index is not shown.
        title: what it holds.
        name: of the CSV file, without ending.
        options: as `st.dataframe` takes them.
    """
    with st.container(gap="xxsmall", horizontal_alignment="right"):
        shown = st.dataframe(frame, hide_index=True, alt=title, placeholder="", **options)
        _download("CSV", lambda: frame.to_csv(index=False), f"{name}.csv", "text/csv", f"As a table: {title}")
    return shown


def _download(label: str, content: Callable[[], str], file: str, mime: str, meaning: str) -> None:
    st.download_button(
        label,
        content,
        file,
        mime,
        key=f"save-{file}",
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
        help=meaning,
    )


def problems(runs: list[RunSummary]) -> None:
    """Say which runs are damaged and how."""
    broken = [run for run in runs if run.problem]
    if not broken:
        return
    label = f"{len(broken)} damaged run{'s' if len(broken) > 1 else ''}"
    with st.expander(label, icon=":material/warning:"):
        st.caption("They stay as they are; everything that can be read of them is shown.")
        rows = [{"run": run.id, "problem": run.problem} for run in broken]
        table(pd.DataFrame(rows), "Damaged runs and what is wrong with them", "damaged")


def empty(title: str, text: str, commands: list[str]) -> None:
    """Show what to do where there is nothing to show yet."""
    with st.container(border=True):
        section(title, text)
        st.code("\n".join(commands), language="bash")
