"""Training curves with their controls, for the Runs page and for one run's own page."""

import pandas as pd
import streamlit as st

from dashboard import charts, components, data
from toolkit.runs.reader import RunSummary

FIRST = ("perplexity", "loss", "accuracy")  # shown unasked, where logged


def training_curves(runs: list[RunSummary], page: str) -> None:
    """Draw the curves of some runs.

    Args:
        runs: readable runs, in the order that gives their colours.
        page: begins the keys of the controls, which are URL parameters.
    """
    tables = {run.id: table for run in runs if len(table := data.metrics_of(run))}
    runs = [run for run in runs if run.id in tables]
    names = list(dict.fromkeys(name for table in tables.values() for name in table["name"]))
    components.section(
        "How did training go?", "Values as they were logged; with smoothing they stand pale behind the curve."
    )
    if not names:
        st.info("These runs logged no numbers.")
        return
    default = [name for name in FIRST if name in names][:2] or names[:1]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        shown = st.pills(
            "Curves",
            names,
            default=default,
            selection_mode="multi",
            key=f"{page}_curves",
            bind="query-params",
            format_func=lambda name: name.replace("_", " "),
        )
        axes = [x for x in charts.AXES if any(table[x].notna().any() for table in tables.values())]
        x = st.segmented_control(
            "Over", axes, default=axes[0], required=True, key=f"{page}_x", bind="query-params", format_func=_AXIS.get
        )
        smoothing = st.slider(
            "Smoothing, half-life in steps", 0, 200, 0, 5, key=f"{page}_smooth", bind="query-params", width=220
        )
        steep = any(charts.is_steep(tables[run.id], name) for run in runs for name in default)
        log = st.toggle("Log axis", steep, key=f"{page}_log", bind="query-params")
    labels = _labels(runs)
    columns = st.columns(2 if len(shown) > 1 else 1, gap="large")
    for number, name in enumerate(shown):
        parts = [charts.curve_points(tables[run.id], name, x, smoothing).assign(run=labels[run.id]) for run in runs]
        points = pd.concat([part for part in parts if len(part)] or parts[:1])
        with columns[number % len(columns)]:
            if points.empty:
                st.info(f"No {name.replace('_', ' ')} over {_AXIS[x]}.")
                continue
            drawn = [label for label in labels.values() if label in set(points["run"])]
            title = f"{name.replace('_', ' ')} of {', '.join(drawn)} over {charts.AXES[x]}"
            components.chart(charts.curves(points, drawn, name, x, log, smoothing > 0), title, f"{page}-{name}")
            kinds = {line for line in points["line"] if "softmax" in line}
            if len(kinds) > 1:
                st.caption(
                    "Sampled and full softmax are different quantities: only the full one is a perplexity that may be "
                    "compared with others."
                )


_AXIS = {"step": "Steps", "tokens": "Tokens", "seconds": "Time"}


def _labels(runs: list[RunSummary]) -> dict[str, str]:
    """Return a label a run: its name, with the time of its start where a name comes twice."""
    names = [run.name for run in runs]
    return {
        run.id: run.name if names.count(run.name) == 1 else f"{run.name} ({run.started:%m-%d %H:%M:%S})" for run in runs
    }
