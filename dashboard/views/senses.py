"""Senses: does the vector of a word follow its sense?"""

import streamlit as st

from dashboard import charts, components, data
from dashboard.kwic import highlighted, kwic, neighbour_frame, occurrence_frame, sense_badge, sense_counts
from dashboard.tables import layer_label
from toolkit.errors import ToolkitError
from toolkit.runs.reader import RunSummary
from toolkit.senses.neighbours import Neighbour, Occurrences, neighbours

PAGE = {
    "order": 3,
    "title": "Senses",
    "icon": ":material/menu_book:",
    "help": "A word in its sentence, and its nearest neighbours in every layer side by side.",
}

INDEX = ["toolkit senses index model --text corpus.txt --words bank,spring"]
NUMBER = "senses_at"
COLUMNS_A_ROW = 4


def choose_run(runs: list[RunSummary]) -> RunSummary:
    by_id = {run.id: run for run in runs}
    return by_id[st.selectbox("Run", list(by_id), key="senses_run", bind="query-params")]


def choose_word(occurrences: Occurrences) -> str:
    return st.selectbox("Word", list(occurrences.counts), key="senses_word", bind="query-params")


def choose_occurrence(number_of: int) -> int:
    """Return the number of the chosen occurrence, from 0."""
    if st.session_state.get(NUMBER, 1) > number_of:  # of a word with more occurrences
        st.session_state[NUMBER] = 1
    return st.number_input("Occurrence", 1, number_of, key=NUMBER, bind="query-params", width=150) - 1


def take_row(key: str) -> None:
    rows = st.session_state[key]["selection"]["rows"]
    if rows:
        st.session_state[NUMBER] = rows[0] + 1  # the file never changes, so a row stays the same occurrence


def show_sentence(occurrences: Occurrences, index: int) -> None:
    with st.container(border=True):
        line = kwic(occurrences.tokens(index), occurrences.positions[index], window=None)
        badge = sense_badge(occurrences.senses[index], occurrences.senses[index])
        st.markdown(f"### {highlighted(line)}")
        if badge:
            st.markdown(f":gray[gold sense] {badge}")


def show_occurrences(occurrences: Occurrences, word: str, run: RunSummary) -> None:
    indices = occurrences.of(word)
    with st.expander(components.escape(sense_counts(occurrences, indices)), icon=":material/list:"):
        key = f"occurrences-{run.id}-{word}"
        components.table(
            occurrence_frame(occurrences, indices),
            f"Occurrences of {word}; a ticked one becomes the query",
            f"occurrences-{word}",
            key=key,
            on_select=lambda: take_row(key),
            selection_mode="single-row",
            height=280,
        )


def show_neighbours(occurrences: Occurrences, index: int) -> None:
    components.section(
        "Nearest neighbours by layer",
        "Cosine in the full space of each layer, nearest first. Layer 0 of a biLM sees the word alone: there all "
        "occurrences of one written form are equal and stand in the order of the file.",
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        k = st.slider("Neighbours", 1, 30, 8, key="senses_k", bind="query-params", width=240)
        same = st.toggle("Only the same word", True, key="senses_same", bind="query-params")
    layers = range(occurrences.n_layers)
    by_layer = [neighbours(occurrences, index, layer, k, same) for layer in layers]
    for start in range(0, occurrences.n_layers, COLUMNS_A_ROW):
        row = layers[start : start + COLUMNS_A_ROW]
        for layer, column in zip(row, st.columns(len(row), gap="medium"), strict=True):
            with column:
                layer_column(occurrences, by_layer[layer], layer, occurrences.senses[index])
    with st.expander("As a table", icon=":material/table:"):
        components.table(neighbour_frame(occurrences, by_layer), "Nearest neighbours by layer", "neighbours")


def layer_column(occurrences: Occurrences, found: list[Neighbour], layer: int, wanted: str) -> None:
    of_token = layer == 0 and "embeddings" not in occurrences.attributes
    st.markdown(f"#### {'Layer 0, the token' if of_token else f'Layer {layer}'}")
    if not found:
        st.info("There is no other occurrence.")
    for near in found:
        line = kwic(occurrences.tokens(near.index), occurrences.positions[near.index])
        with st.container(border=True, gap="xxsmall"):
            st.markdown(highlighted(line))
            badge = sense_badge(occurrences.senses[near.index], wanted)
            st.markdown(f":small[cosine {near.cosine:.3f}] {badge}")


def show_purity(occurrences: Occurrences, word: str) -> None:
    components.section(
        "Do neighbours share the sense?",
        "Purity: the share of the nearest neighbours that carry the occurrence's own gold sense, averaged over all "
        "labelled occurrences of the word.",
    )
    k = st.slider("Neighbours counted", 1, 50, 10, key="senses_purity_k", bind="query-params", width=240)
    purity = data.purity_of(occurrences.path, word, k)
    if purity is None:
        st.info("Too few occurrences of this word have a gold sense.")
        return
    components.chart(
        charts.purity([layer_label(layer) for layer in range(occurrences.n_layers)], purity),
        f"Purity at {k} of {word} by layer, with the share of its most frequent sense",
        f"purity-{word}",
    )
    st.caption(
        f"{purity.n:,} labelled occurrences, {purity.senses} senses. Dashed: always answering the most frequent sense. "
        "Dotted: neighbours drawn at random."
    )


components.heading("Senses", "Does the vector of a word follow its sense, and in which layer?")
runs = [run for run in data.runs() if run.kind == "senses"]
if not runs:
    components.empty(
        "No words are indexed yet",
        "Index the occurrences of the words you care about, with a model folder or a pretraining run. A file with gold "
        "senses also gives the purity of neighbourhoods by layer.",
        INDEX,
    )
    st.stop()
with st.container(horizontal=True, vertical_alignment="bottom"):
    run = choose_run(runs)
    try:
        occurrences = data.occurrences_of(run)
    except ToolkitError as error:
        st.error(components.escape(str(error)), title="The occurrences of this run cannot be read")
        st.stop()
    word = choose_word(occurrences)
    number = choose_occurrence(occurrences.counts[word])
index = int(occurrences.of(word)[number])
show_sentence(occurrences, index)
show_occurrences(occurrences, word, run)
show_neighbours(occurrences, index)
if any(occurrences.senses[other] for other in occurrences.of(word)):
    show_purity(occurrences, word)
