"""A word in its sentence: cut to a window, highlighted, and never taken for Markdown."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stores import senses_run

from dashboard.components import escape
from dashboard.kwic import highlighted, kwic, neighbour_frame, occurrence_frame, sense_badge, sense_counts
from toolkit.runs import schema
from toolkit.senses.neighbours import load, neighbours

TOKENS = ["We", "sat", "on", "the", "bank", "of", "the", "river"]


def test_a_window_is_cut_with_marks_where_more_stands() -> None:
    assert kwic(TOKENS, 4, 2) == ("… on the", "bank", "of the …")
    assert kwic(TOKENS, 0, 2) == ("", "We", "sat on …")
    assert kwic(TOKENS, 4, None) == ("We sat on the", "bank", "of the river")


@given(st.lists(st.text("ab*_", min_size=1, max_size=3), min_size=1, max_size=12), st.data())
def test_a_whole_sentence_comes_back_whole(tokens: list[str], data: st.DataObject) -> None:
    line = kwic(tokens, data.draw(st.integers(0, len(tokens) - 1)), None)
    assert " ".join(part for part in line if part) == " ".join(tokens)


@pytest.mark.parametrize("text", ["*a*", "[x](http://y)", "<b>", ":red[x]", "$5$", "`c`", "# h", ":smile:", "a_b_c"])
def test_corpus_text_is_never_markdown(text: str) -> None:
    escaped = escape(text)
    marks = [char for i, char in enumerate(escaped) if char in r"*_[]()<>#`$:" and escaped[i - 1] != "\\"]
    assert marks == []
    assert escaped.replace("\\", "") == text
    assert highlighted(kwic(["a", text], 1)) == f"a **:blue-background[{escaped}]**"


def test_a_badge_tells_the_wanted_sense_from_another() -> None:
    assert sense_badge("river", "river").startswith(":green-badge[")
    assert sense_badge("money", "river").startswith(":orange-badge[")
    assert sense_badge("money", "").startswith(":gray-badge[")
    assert sense_badge("", "river") == ""


def test_tables_of_occurrences_and_neighbours_match_the_file(tmp_path: Path) -> None:
    occurrences = load(senses_run(tmp_path) / schema.OCCURRENCES)
    frame = occurrence_frame(occurrences, occurrences.of("bank"))
    assert set(frame["word"]) == {"bank"}
    assert frame["sense"].value_counts().to_dict() == {"money": 14, "river": 12}
    assert sense_counts(occurrences, occurrences.of("bank")) == "26 occurrences; senses: money 14, river 12"
    by_layer = [neighbours(occurrences, 0, layer, 3) for layer in range(3)]
    near = neighbour_frame(occurrences, by_layer)
    assert near["layer"].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert near.loc[0, "cosine"] == 1.0


def test_without_senses_there_is_no_sense_column(tmp_path: Path) -> None:
    occurrences = load(senses_run(tmp_path, labelled=False) / schema.OCCURRENCES)
    assert "sense" not in occurrence_frame(occurrences, occurrences.of("bank"))
    assert sense_counts(occurrences, occurrences.of("bank")) == "26 occurrences"


def test_of_many_senses_only_the_frequent_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    occurrences = load(senses_run(tmp_path) / schema.OCCURRENCES)
    monkeypatch.setattr("dashboard.kwic.SENSES_NAMED", 1)
    assert sense_counts(occurrences, occurrences.of("bank")) == "26 occurrences; senses: money 14 and 1 more"
