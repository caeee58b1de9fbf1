"""Tags, note and archive flag of a run: the only thing that the dashboard writes."""

import streamlit as st

from dashboard import components, data
from toolkit.runs.notes import Notes, read_notes, write_notes
from toolkit.runs.reader import RunSummary


def notes_editor(runs: list[RunSummary]) -> None:
    """Show the notes of one of the chosen runs, to be changed."""
    components.section(
        "Notes", "Tags, a note and the archive flag are kept beside the run; nothing else is changed here."
    )
    by_id = {run.id: run for run in runs}
    run = runs[0]
    if len(runs) > 1:
        run = by_id[
            st.selectbox("Of run", list(by_id), format_func=lambda key: by_id[key].name or key, key="notes_run")
        ]
    with st.form(f"notes-{run.id}", border=True):
        left, right = st.columns([1, 2])
        tags = left.text_input(
            "Tags", ", ".join(run.notes.tags), placeholder="baseline, paper", help="Parted by commas."
        )
        archived = left.toggle("Archived", run.notes.archived, help="Hides the run from the lists; nothing is deleted.")
        note = right.text_area("Note", run.notes.note, height=120)
        if st.form_submit_button("Save"):
            save(run.id, Notes(tags=tuple(tags.split(",")), note=note, archived=archived))


def save(run_id: str, notes: Notes) -> None:
    """Write the notes of a listed run, then draw the page anew."""
    folder = data.run_by_id(run_id).folder
    if notes != read_notes(folder):
        write_notes(folder, notes)
    st.rerun()
