"""What the user has chosen: run ids in the URL, never row numbers; and the choices that pages offer."""

from collections.abc import Sequence

import streamlit as st

from toolkit.runs import schema
from toolkit.runs.find import seeds_of
from toolkit.runs.reader import RunSummary

SELECTED = "runs"  # key of the multiselect, and so the URL's parameter
REVISION = "runs_table_revision"


def table_key(shown: Sequence[str]) -> str:
    """Return the run table's key: another one for other rows, and after each selection that the table did not make.

    The browser keeps selected row numbers by key; under one key a number would point to another run once rows move.
    """
    return f"runs-table-{hash(tuple(shown))}-{st.session_state.get(REVISION, 0)}"


def selection_changed_elsewhere() -> None:
    """Make the table take its selection anew."""
    st.session_state[REVISION] = st.session_state.get(REVISION, 0) + 1


def take_rows(key: str, shown: Sequence[str]) -> None:
    """Turn the table's selected rows into run ids; selected runs that the filter hides stay selected."""
    rows = st.session_state[key]["selection"]["rows"]
    hidden = [run for run in st.session_state.get(SELECTED, []) if run not in shown]
    st.session_state[SELECTED] = hidden + [shown[row] for row in rows if row < len(shown)]


def groups(runs: Sequence[RunSummary]) -> dict[str, list[RunSummary]]:
    """Return what can be compared: groups of several seeds first, then single runs by id.

    The key is what a widget shows and what the URL keeps: Streamlit binds the shown text, so it names exactly one
    choice and does not change as seeds are added.
    """
    by_group: dict[str, list[RunSummary]] = {}
    for run in runs:
        if run.status == schema.DONE:
            by_group.setdefault(run.group, []).append(run)
    seeds = {group: seeds_of(members) for group, members in by_group.items()}
    several = {f"{m[0].title} · all seeds · {group[:8]}": m for group, m in seeds.items() if len(m) > 1}
    return several | {run.id: [run] for run in runs if run.status == schema.DONE or run.metrics}


def first_pair(choices: dict[str, list[RunSummary]]) -> tuple[str, str] | None:
    """Return two choices of one kind and task to start with: the newest, and one that differs; no damaged ones."""
    keys = [key for key, members in choices.items() if not any(run.problem for run in members)]
    for i, b in enumerate(keys):
        for a in keys[i + 1 :]:
            one, other = choices[a][0], choices[b][0]
            alike = (one.kind, one.task) == (other.kind, other.task)
            if alike and one.group != other.group and len(choices[a]) == len(choices[b]):
                return a, b
    return None
