"""Run detail: everything on one run, under a link of its own (`?run=`)."""

import pandas as pd
import streamlit as st

from dashboard import charts, components, data, tables
from dashboard.editor import notes_editor
from dashboard.training import training_curves
from toolkit.runs import schema
from toolkit.runs.describe import duration_text, metric_title, run_files, score_text, time_text
from toolkit.runs.reader import Run, load_run, log_tail

PAGE = {
    "order": 9,
    "title": "Run detail",
    "icon": ":material/description:",
    "help": "Everything on one run: where it comes from, settings, scores, curves, files and log.",
    "visibility": "hidden",
}


def top(run: Run) -> None:
    summary = run.summary
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header(components.escape(summary.name or summary.id), anchor=False, width="content")
        components.status_badge(summary.status)
    when = f"{time_text(summary.started)} UTC" if summary.started else ""
    if summary.started and summary.ended:
        when += f", {duration_text((summary.ended - summary.started).total_seconds())}"
    facts = [summary.kind, summary.task, f"seed {summary.seed}" if summary.seed is not None else None, when]
    st.caption(components.escape(" · ".join(fact for fact in facts if fact)))
    if summary.problem:
        st.warning(components.escape(summary.problem), title="This run is damaged", icon=":material/warning:")
    if run.manifest.get("message"):
        st.error(components.escape(str(run.manifest["message"])), title="It failed")
    if summary.metrics:
        with st.container(horizontal=True):
            for metric in summary.metrics:
                value = score_text(metric)
                st.metric(metric_title(metric), value, border=True, width="content")


def parts(run: Run) -> None:
    folder = run.summary.folder
    left, right = st.columns(2, gap="large")
    with left:
        components.section("Settings", "Those that can change what this kind of run computes.")
        relevant = schema.relevant_settings(run.summary.kind, run.settings)
        everything = st.toggle("All settings", key="detail_all", bind="query-params")
        settings = run.settings if everything else relevant
        rows = [(key, str(value)) for key, value in settings.items()]
        frame = pd.DataFrame(rows, columns=["setting", "value"])
        components.table(frame, "Settings", "detail-settings")
    with right:
        components.section("Where it comes from", "The command, the machine, the versions and what it read.")
        facts = pd.DataFrame(tables.manifest_facts(run.manifest), columns=["what", "value"])
        components.table(facts, "Manifest", "detail-manifest")
    left, right = st.columns(2, gap="large")
    with left:
        components.section("Files", str(len(files := run_files(folder))) + " in the run folder.")
        components.table(
            pd.DataFrame(files, columns=["file", "bytes"]),
            "Files of the run",
            "detail-files",
            column_config={"bytes": st.column_config.NumberColumn("size", format="bytes")},
        )
    with right:
        components.section("Log", "The last 200 lines.")
        log = log_tail(folder)
        if log:
            st.code(log, language=None, height=300, wrap_lines=True)
        else:
            st.info("This run logged no lines.")


def mix(run: Run) -> None:
    frame = tables.mix_frame([run.summary], [data.layers_of(run.summary)], run.summary.name)
    if frame.empty:
        return
    last = frame[frame["last"]]
    components.section(
        "Which layers does the classifier use?",
        f"Softmax weights of the scalar mix after training, gamma {last['gamma'].iloc[0]:.2f}, and on the way there.",
    )
    left, right = st.columns(2, gap="large")
    with left:
        components.chart(charts.mix_weights(last), "Weights of the scalar mix by layer", "detail-mix")
    with right:
        components.chart(charts.mix_history(frame), "Weights of the scalar mix over training", "detail-mix-history")


st.page_link("views/runs.py", label="All runs", icon=":material/arrow_back:")
ids = [run.id for run in data.runs(with_archived=True)]
if not ids:
    st.info("No runs in this store.")
    st.stop()
asked = st.query_params.get("run")
if asked is not None and asked not in ids:
    data.run_by_id(asked)  # says that there is none
chosen = st.selectbox("Run", ids, key="run", bind="query-params", help="The link to this page names the run.")
run = load_run(data.run_by_id(chosen).folder)
top(run)
if run.summary.status != schema.UNREADABLE:
    if run.summary.kind != "senses":  # nothing is trained there
        training_curves([run.summary], "detail")
    mix(run)
parts(run)
notes_editor([run.summary])
