"""The table that `toolkit evaluate` prints."""

from collections.abc import Mapping, Sequence
from typing import Any

from toolkit.runs.describe import columns
from toolkit.runs.describe_table import table_text
from toolkit.runs.table import ScoreTable

HEADER = ("TASK", "MIX", "VECTOR", "HEAD", "SEEDS", "DEV", "TEST", "±", "N", "LAYERS", "GAMMA")
UNEVEN = 0.75  # share of the most frequent label from which an accuracy says little


def evaluation_text(documents: Sequence[Mapping[str, Any]], table: ScoreTable) -> str:
    """Return each configuration with its mix, the paired comparisons, and at the end the table of scores.

    Args:
        documents: of `tasks.adapter.grid.run_grid`.
        table: of all their runs.
    """
    rows = [HEADER, *(_row(d["task"], row) for d in documents for row in (*d["floors"], *d["rows"]))]
    blocks = [columns(rows), "\n".join(_notes(documents))]
    over_bag = [f"{d['task']}: {c['sentence']}" for d in documents for c in d["over_bag"]]
    blocks += ["\n".join(["What each representation adds to a bag of words:", *over_bag])] if over_bag else []
    sentences = [f"{d['task']}: {c['sentence']}" for d in documents for c in d["comparisons"]]
    blocks += ["\n".join(sentences)] if sentences else []
    return "\n\n".join([*blocks, table_text(table)])


def _row(task: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    deviations = row["layer_weights_sd"] or [None] * len(row["layer_weights"] or ())
    layers = " ".join(_with_deviation(*pair) for pair in zip(row["layer_weights"] or (), deviations, strict=True))
    return (
        task,
        row["mix"] if row["train_fraction"] == 1 else f"{row['mix']}, {row['train_fraction']:g} of train",
        row["representation"],
        row["head"],
        str(row["seeds"]),
        f"{100 * row['dev']:.1f}",
        f"{100 * row['test']:.1f}",
        "-" if row["low"] is None else f"{50 * (row['high'] - row['low']):.1f}",
        f"{row['n']:,}",
        layers or "-",
        _with_deviation(row["gamma"], row["gamma_sd"]) if layers else "-",
    )


def _with_deviation(value: float, deviation: float | None) -> str:
    return f"{value:.2f}" if deviation is None else f"{value:.2f}±{deviation:.2f}"


def _notes(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [row for document in documents for row in document["rows"]]
    metrics = " / ".join(dict.fromkeys(document["metric"] for document in documents))
    notes = [f"DEV and TEST: {metrics} in percent, mean over the seeds; the epoch was chosen on dev."]
    for document in documents:
        majority = document.get("majority")
        if majority and majority["rate"] >= UNEVEN and document["metric"] == "accuracy":
            notes.append(
                f"{100 * majority['rate']:.1f} % of the test examples of {document['task']} are "
                f"{majority['label']!r}: accuracy says little about the other classes; --metric macro_f1 or matthews "
                "counts them."
            )
    if any(document["floors"] for document in documents):
        notes.append(
            "majority and bag are floors: they read the words alone and need no model (--no-floors leaves them out)."
        )
    notes.append(
        "±: half of the 95 % interval of TEST, over other test examples and, where the seeds differ, other seeds."
    )
    if any(row["layer_weights"] for row in rows):
        notes.append("LAYERS: weights of the layers, layer 0 first, with the standard deviation over seeds.")
    tuned = next((row["bilm"] for row in rows if row["bilm"] and row["bilm"]["fine_tuned"]), None)
    if tuned:
        notes.append(
            f"The biLM was fine-tuned with the head, at the rate {tuned['learning_rate']:g}: its checksum was "
            f"{tuned['checksum_before']} before and is another in each run (results.json)."
        )
    return notes
