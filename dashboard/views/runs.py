"""Runs: what have I run, which is best, is anything alive?"""

import streamlit as st

from dashboard import charts, components, data, state
from dashboard.editor import notes_editor
from dashboard.tables import matching, runs_frame
from dashboard.training import training_curves
from toolkit.runs.describe import duration_text, number
from toolkit.runs.reader import RunSummary
from toolkit.runs.schema import UNREADABLE

PAGE = {
    "order": 1,
    "title": "Runs",
    "icon": ":material/table_rows:",
    "help": "All runs with their status and scores, what is running now, and training curves.",
}

REFRESH_SECONDS = 3
FIRST_RUN = [
    "toolkit pretrain --corpus corpus.txt --preset tiny --minutes 5",
    "toolkit evaluate --task rotten_tomatoes --model <run> --mix learned",
    "toolkit senses index <run> --text corpus.txt --words bank,spring",
]


def live_strip(alive: list[RunSummary]) -> None:
    now = [run for run in data.runs() if run.alive]
    if {run.id for run in now} != {run.id for run in alive}:
        st.rerun()  # one has begun or ended: the whole page is out of date
    components.section("Running now")
    with st.container(horizontal=True):
        for run in now:
            live_card(run)


def live_card(run: RunSummary) -> None:
    live = charts.last_values(data.metrics_of(run))
    with st.container(border=True, width=420):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(f"**{components.escape(run.name)}**")
            components.status_badge(run.status)
        if run.progress is not None:
            left = f", about {duration_text(run.seconds_left)} left" if run.seconds_left is not None else ""
            st.progress(min(max(run.progress, 0.0), 1.0), text=f"{run.progress:.0%}{left}")
        facts = [f"{name.replace('_', ' ')} **{number(value)}**" for name, value in live.items()]
        st.markdown(" · ".join(facts) if facts else ":gray[no numbers yet]")


def nothing_yet() -> None:
    components.empty(
        "No runs here yet",
        "Train a small biLM on your own text, see what its layers are worth on a task, and index the words you care "
        "about. Each command leaves a run that shows up on this page.",
        FIRST_RUN,
    )


def filters(runs: list[RunSummary]) -> list[RunSummary]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input(
            "Search", key="runs_search", bind="query-params", placeholder="name, task or tag", width=240
        )
        kinds = sorted({run.kind for run in runs if run.kind})
        kind = st.pills("Kind", kinds, selection_mode="multi", key="runs_kind", bind="query-params")
        statuses = sorted({run.status for run in runs})
        status = st.pills("Status", statuses, selection_mode="multi", key="runs_status", bind="query-params")
        if any(run.notes.archived for run in runs):
            archived = st.toggle("Archived too", key="runs_archived", bind="query-params")
        else:
            archived = False
    return matching(runs, text, kind, status, archived)


def run_table(shown: list[RunSummary], baseline: RunSummary | None) -> None:
    ids = [run.id for run in shown]
    key = state.table_key(ids)
    chosen = set(st.session_state.get(state.SELECTED, []))
    components.table(
        runs_frame(shown, baseline),
        "Runs, newest first",
        "runs",
        key=key,
        on_select=lambda: state.take_rows(key, ids),
        selection_mode="multi-row",
        selection_default={"selection": {"rows": [i for i, run in enumerate(ids) if run in chosen]}},
        column_config={
            "details": st.column_config.LinkColumn(display_text="open", width=60),
            "name": st.column_config.TextColumn(width=225),
            "metric": st.column_config.TextColumn(width=130),
            "score": st.column_config.TextColumn(
                width=150, help="Half the width of the 95 % interval stands behind ±."
            ),
            "status": components.status_column(),
            "tags": st.column_config.ListColumn(width=130),
        },
    )


def selected_runs(runs: dict[str, RunSummary]) -> list[RunSummary]:
    known = [run for run in st.session_state.get(state.SELECTED, []) if run in runs]
    if known != st.session_state.get(state.SELECTED, known):
        st.session_state[state.SELECTED] = known
    chosen = st.multiselect(
        "Selected runs",
        list(runs),
        key=state.SELECTED,
        bind="query-params",
        on_change=state.selection_changed_elsewhere,
        placeholder="Tick rows above, or choose runs here",
    )
    return [runs[run] for run in chosen]


everything = data.runs(with_archived=True)
components.heading("Runs", "What have I run, which is best, and is anything alive?")
if not everything:
    nothing_yet()
    st.stop()
alive_now = [run for run in everything if run.alive and not run.notes.archived]
if alive_now:
    st.fragment(live_strip, run_every=REFRESH_SECONDS)(alive_now)
shown = filters(everything)
by_id = {run.id: run for run in everything}
scored = [run.id for run in everything if run.main_score]
slot = st.container()
left, right = st.columns([3, 1], vertical_alignment="bottom")
with left:
    chosen = selected_runs(by_id)
with right:
    baseline = st.selectbox(
        "Baseline",
        scored,
        index=None,
        key="runs_baseline",
        bind="query-params",
        placeholder="none",
        help="Scores of the same metric are then shown as differences from this run.",
    )
with slot:
    if shown:
        run_table(shown, by_id[baseline] if baseline else None)
    else:
        st.info("No run fits these filters.")
    components.problems(everything)
if chosen:
    training_curves([run for run in chosen if run.status != UNREADABLE], "runs")
    notes_editor(chosen)
