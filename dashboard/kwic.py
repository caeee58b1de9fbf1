"""A word in its sentence, as lines of text and as a table; no Streamlit."""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from dashboard.components import escape
from toolkit.senses.neighbours import Neighbour, Occurrences

WINDOW = 6  # tokens on each side
SENSES_NAMED = 3  # in the summary of a word; WordNet has 38 for "light"
SENSE_COLORS = {True: "green", False: "orange"}


class Kwic(NamedTuple):
    """The word with what stands before and behind it."""

    left: str
    word: str
    right: str


def kwic(tokens: Sequence[str], position: int, window: int | None = WINDOW) -> Kwic:
    """Return the token at a position and up to `window` tokens on each side; None for the whole sentence."""
    first = 0 if window is None else max(position - window, 0)
    last = len(tokens) if window is None else position + 1 + window
    left, right = " ".join(tokens[first:position]), " ".join(tokens[position + 1 : last])
    return Kwic(f"… {left}" if first else left, tokens[position], f"{right} …" if last < len(tokens) else right)


def highlighted(line: Kwic) -> str:
    """Return the line as Markdown with the word on colour and everything else as it stands."""
    return f"{escape(line.left)} **:blue-background[{escape(line.word)}]** {escape(line.right)}".strip()


def sense_badge(sense: str, wanted: str) -> str:
    """Return a sense as a Markdown badge: green where it is the wanted one, orange where it is another.

    Returns:
        "" without a sense; gray where the wanted one is not known.
    """
    if not sense:
        return ""
    return f":{SENSE_COLORS[sense == wanted] if wanted else 'gray'}-badge[{escape(sense)}]"


def occurrence_frame(occurrences: Occurrences, indices: Sequence[int]) -> pd.DataFrame:
    """Return a word's occurrences: number (from 1), before, word, behind, sense where any is known."""
    rows = []
    for number, index in enumerate(indices, 1):
        line = kwic(occurrences.tokens(index), occurrences.positions[index])
        rows.append((number, *line, occurrences.senses[index]))
    frame = pd.DataFrame(rows, columns=["number", "before", "word", "behind", "sense"])
    return frame if frame["sense"].any() else frame.drop(columns="sense")


def neighbour_frame(occurrences: Occurrences, by_layer: Sequence[Sequence[Neighbour]]) -> pd.DataFrame:
    """Return the neighbours of all layers: layer, rank, cosine, sense, before, word, behind."""
    rows = []
    for layer, found in enumerate(by_layer):
        for rank, near in enumerate(found, 1):
            line = kwic(occurrences.tokens(near.index), occurrences.positions[near.index])
            rows.append((layer, rank, round(near.cosine, 4), occurrences.senses[near.index], *line))
    return pd.DataFrame(rows, columns=["layer", "rank", "cosine", "sense", "before", "word", "behind"])


def sense_counts(occurrences: Occurrences, indices: Sequence[int]) -> str:
    """Return "54 occurrences; senses: money 34, river 20", the frequent first, of many only those."""
    number = f"{len(indices):,} occurrence{'' if len(indices) == 1 else 's'}"
    senses = pd.Series([occurrences.senses[index] for index in indices])
    counts = senses[senses != ""].value_counts()
    if counts.empty:
        return number
    shown = ", ".join(f"{sense} {n:,}" for sense, n in counts.head(SENSES_NAMED).items())
    return f"{number}; senses: {shown}" + (f" and {len(counts) - SENSES_NAMED} more" * (len(counts) > SENSES_NAMED))
