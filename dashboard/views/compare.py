"""Compare: why is B better than A, and is it?"""

import pandas as pd
import streamlit as st

from dashboard import charts, components, data, state, tables
from toolkit.errors import ToolkitError
from toolkit.runs.compare import BOTH, NEITHER, ONLY_A, ONLY_B, Comparison, outcome_counts
from toolkit.runs.describe_comparison import score_rows
from toolkit.runs.reader import RunSummary, load_run
from toolkit.runs.schema import DONE, relevant_settings

PAGE = {
    "order": 2,
    "title": "Compare",
    "icon": ":material/balance:",
    "help": "Two runs or groups of seeds beside each other: settings, scores, a paired test, layer weights, examples.",
}

TWO_RUNS = [
    "toolkit evaluate --task rotten_tomatoes --model <run> --mix none --seeds 3",
    "toolkit evaluate --task rotten_tomatoes --model <run> --mix learned --seeds 3",
]


def choose(choices: dict[str, list[RunSummary]]) -> tuple[str, str]:
    pair = state.first_pair(choices) or tuple(list(choices)[:2])
    columns = st.columns(2)
    picked = []
    for side, column, first in zip("AB", columns, pair, strict=True):
        picked.append(
            column.selectbox(
                side,
                list(choices),
                index=list(choices).index(first),
                key=f"cmp_{side.lower()}",
                bind="query-params",
            )
        )
    return picked[0], picked[1]


def verdict(comparison: Comparison) -> None:
    with st.container(border=True):
        st.markdown(f"### {components.escape(comparison.sentence)}")
        paired = comparison.paired
        if paired is None:
            return
        components.chart(
            charts.difference_interval(paired.difference, paired.low, paired.high),
            f"Difference between B and A with its 95 % interval: {comparison.sentence}",
            "compare-difference",
        )
        note = f"Both predicted the same {paired.n:,} {comparison.split} examples, which are compared in pairs."
        if any(paired.varied):
            note += " The interval counts both other test examples and other seeds."
        else:
            note += " This is about these trainings only: it says nothing about how other seeds would turn out."
        st.caption(note)


def scores_and_settings(comparison: Comparison) -> None:
    left, right = st.columns(2, gap="large")
    with left:
        components.section(
            "Scores",
            "± is half of the 95 % interval, over other test examples and, where the seeds differ, other seeds.",
        )
        rows = score_rows(comparison.runs_a, comparison.runs_b)
        components.table(pd.DataFrame(rows, columns=["metric", "A", "B"]), "Scores of A and B", "compare-scores")
    with right:
        components.section("Settings", "Those that can change the outcome; seeds, paths and times are left out.")
        only = st.toggle("Differences only", True, key="cmp_differences", bind="query-params")
        sides = [
            relevant_settings(runs[0].kind, load_run(runs[0].folder).settings)
            for runs in (comparison.runs_a, comparison.runs_b)
        ]
        for side, index in zip(sides, (0, 1), strict=True):
            side |= {key: pair[index] for key, pair in comparison.settings.items()}
        frame = tables.settings_frame(*sides)
        frame = frame[frame["differs"]] if only else frame
        if frame.empty:
            st.info("No setting differs.")
        else:
            components.table(frame.drop(columns="differs"), "Settings of A and B", "compare-settings")


def layer_weights(comparison: Comparison) -> None:
    mixes = pd.concat(
        [
            tables.mix_frame(runs, [data.layers_of(run) for run in runs], f"{letter}: {name}")
            for letter, name, runs in (
                ("A", comparison.a, comparison.runs_a),
                ("B", comparison.b, comparison.runs_b),
            )
        ]
    )
    components.section(
        "Which layers does the classifier use?",
        "The scalar mix learns one softmax weight a layer and a scale, gamma. Bars are means over seeds, points are "
        "seeds, the dashed line is the even mix that training starts from.",
    )
    if mixes.empty:
        st.info("Neither side learned a mix: `--mix learned` does.")
        return
    left, right = st.columns(2, gap="large")
    last = mixes[mixes["last"]]
    with left:
        components.chart(charts.mix_weights(last), "Weights of the scalar mix by layer", "compare-mix")
        gammas = last.groupby("side", sort=False)["gamma"].agg(["mean", "min", "max"])
        st.caption(
            " · ".join(
                f"gamma of {components.escape(str(side))}: {row['mean']:.2f}"
                + (f" ({row['min']:.2f} to {row['max']:.2f})" if row["min"] != row["max"] else "")
                for side, row in gammas.iterrows()
            )
        )
    with right:
        components.chart(
            charts.mix_history(tables.carried_on(mixes)),
            "Weights of the scalar mix over training",
            "compare-mix-history",
        )


def efficiency(comparison: Comparison) -> None:
    """Draw the curve where one side was trained on parts of the training examples too."""
    finished = [
        load_run(run.folder) for run in data.runs() if run.status == DONE and run.task == comparison.runs_a[0].task
    ]
    scores = tables.efficiency_frame(comparison.runs_a, comparison.runs_b, finished)
    if scores["fraction"].nunique() < 2:
        return
    components.section(
        "How many training examples does it take?",
        "Runs that only `evaluate.train_fraction` tells apart: lines are means over the seeds, points are seeds.",
    )
    components.chart(
        charts.efficiency(scores, f"{comparison.split} {comparison.metric}"),
        "Scores over the share of the training examples",
        "compare-efficiency",
    )


def examples(comparison: Comparison) -> None:
    counts = outcome_counts(comparison.examples)
    components.section(
        "On which examples do they differ?",
        "Examples on which both sides are right, or both wrong, say nothing about the difference.",
    )
    left, right = st.columns([2, 3], gap="large")
    with left:
        components.chart(
            charts.outcomes(counts, "A", "B"),
            "How many examples both, only A, only B or neither got right",
            "compare-2x2",
        )
    with right:
        outcome = st.segmented_control(
            "Show",
            [ONLY_B, ONLY_A, NEITHER, BOTH],
            default=ONLY_B,
            required=True,
            key="cmp_outcome",
            bind="query-params",
        )
        frame = comparison.examples[comparison.examples["outcome"] == outcome]
        order = ["gold", "predicted_a", "predicted_b", "text", "example_id"]
        frame = frame[[column for column in order if column in frame.columns]]
        frame = frame.rename(columns={"example_id": "id", "predicted_a": "A says", "predicted_b": "B says"})
        components.table(
            frame,
            f"Examples: {outcome}",
            "compare-examples",
            column_config={
                name: st.column_config.TextColumn(width="large" if name == "text" else "small")
                for name in frame.columns
            },
        )


components.heading("Compare", "Why is B better than A, and is it?")
choices = state.groups(data.runs())
if len(choices) < 2:
    components.empty(
        "Two finished runs are needed",
        "Evaluate two representations on one task. Runs of several seeds are compared as one group.",
        TWO_RUNS,
    )
    st.stop()
a, b = choose(choices)
if a == b:
    st.info("A and B are the same. Choose another run for one of them.")
    st.stop()
try:
    comparison = data.comparison_of(choices[a], choices[b])
except ToolkitError as error:
    st.error(components.escape(str(error)), title="These two cannot be compared")
    st.stop()
verdict(comparison)
scores_and_settings(comparison)
if comparison.paired is not None:
    layer_weights(comparison)
    efficiency(comparison)
    examples(comparison)
