"""Charts: tables in, Altair charts out; no Streamlit, no files."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import vl_convert

from toolkit.senses.neighbours import Purity

# Paul Tol's "bright" scheme, for files; on the page the theme of config.toml gives the colours for light and dark.
PALETTE = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#BBBBBB")
DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (4, 4))
MAX_POINTS = 2000
MUTED = "#8A94A0"  # readable on both backgrounds

LEGEND_ROW = 40  # characters of labels that fit beside each other above a chart of half the page
FEW = 30  # points of a line that are drawn as points too, so that a single one can be seen

AXES = {"step": "step", "tokens": "training tokens", "seconds": "minutes since start"}


def curve_points(metrics: pd.DataFrame, name: str, x: str, smoothing: float) -> pd.DataFrame:
    """Return one run's points of one metric, ready to draw.

    Args:
        metrics: as `read_metrics` gives it.
        name: the metric.
        x: "step", "tokens" or "seconds" (drawn in minutes).
        smoothing: half-life of the moving average in steps; 0 for none.

    Returns:
        columns x, value, smooth, line (split and kind of softmax), at most about 2,000 rows a line.
    """
    parts = []
    rows = metrics[(metrics["name"] == name) & metrics[x].notna()]
    for (split, kind), part in rows.groupby(["split", "kind"], sort=False):
        part = part.sort_values(x, kind="stable")
        place = part["step"].fillna(pd.Series(np.arange(len(part)), index=part.index)).to_numpy()
        points = pd.DataFrame(
            {
                "x": part[x].to_numpy() / (60 if x == "seconds" else 1),
                "value": part["value"].to_numpy(),
                "smooth": smooth(part["value"].to_numpy(), place, smoothing),
                "line": f"{split}, {kind} softmax" if kind else split,
            }
        )
        parts.append(thin(points))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["x", "value", "smooth", "line"])


def is_steep(metrics: pd.DataFrame, name: str) -> bool:
    """Return whether a metric spans so much that a linear axis would show its first steps only, as perplexity does."""
    values = metrics.loc[metrics["name"] == name, "value"]
    values = values[np.isfinite(values) & (values > 0)]
    return len(values) > 1 and values.max() > 20 * values.min()


def smooth(values: np.ndarray, steps: np.ndarray, half_life: float) -> np.ndarray:
    """Return the debiased exponential moving average with a half-life in steps, on the whole series.

    Debiased: the first values are not over-weighted. Values that are not finite are passed over and stay gaps.
    """
    if half_life <= 0:
        return values.astype(float)
    result = np.full(len(values), np.nan)
    total = weight = 0.0
    before: float | None = None
    for i, (value, step) in enumerate(zip(values, steps, strict=True)):
        if not np.isfinite(value):
            continue
        keep = 0.0 if before is None else 0.5 ** (max(step - before, 0) / half_life)
        total, weight, before = keep * total + value, keep * weight + 1.0, step
        result[i] = total / weight
    return result


def thin(points: pd.DataFrame, most: int = MAX_POINTS) -> pd.DataFrame:
    """Return at most `most` rows that keep the extremes of `value` in each stretch, so that no spike disappears."""
    if len(points) <= most:
        return points
    keep: set[int] = {0, len(points) - 1}
    values = points["value"].to_numpy()
    for bucket in np.array_split(np.arange(len(points)), most // 2 - 1):
        finite = bucket[np.isfinite(values[bucket])]
        if len(finite):
            keep |= {int(finite[values[finite].argmin()]), int(finite[values[finite].argmax()])}
    return points.iloc[sorted(keep)]


def curves(points: pd.DataFrame, runs: Sequence[str], name: str, x: str, log: bool, smoothed: bool) -> alt.LayerChart:
    """Draw training curves.

    Args:
        points: `curve_points` of each run, with a column `run`.
        runs: run names in the order of their selection, which gives the colours.
        name: the metric, for the axis.
        x: as in `curve_points`.
        log: whether the value axis is logarithmic.
        smoothed: whether a smoothed line is drawn, with the raw one pale behind it.
    """
    finite = points[np.isfinite(points["value"]) & (points["value"] > 0 if log else True)]
    finite = finite.assign(few=finite.groupby(["run", "line"])["x"].transform("size") <= FEW)
    lines = list(dict.fromkeys(points["line"]))
    base = alt.Chart(finite).encode(
        x=alt.X("x:Q", title=AXES[x], axis=alt.Axis(format=_ticks(finite["x"].max()), tickCount=6)),
        color=alt.Color("run:N", title=None, scale=alt.Scale(domain=list(runs)), legend=_legend(runs)),
    )
    dashed = base.encode(strokeDash=_dash("line", lines))
    scale = alt.Scale(type="log", nice=False) if log else alt.Scale(zero=False)
    axis = alt.Axis(format=_ticks(finite["value"].max()), tickCount=5)
    main = dashed.mark_line(strokeWidth=2).encode(
        y=alt.Y("smooth:Q", title=name.replace("_", " "), scale=scale, axis=axis)
    )
    # Without the dash pattern, which would give the legend filled symbols that dark pages swallow.
    dots = base.transform_filter("datum.few").mark_point(filled=True, size=30, opacity=1).encode(y="smooth:Q")
    over = base.mark_point(size=60, opacity=0).encode(
        y=alt.Y("smooth:Q", title=name.replace("_", " ")),
        tooltip=[
            alt.Tooltip("run:N"),
            alt.Tooltip("line:N", title="curve"),
            alt.Tooltip("x:Q", title=AXES[x], format=",.4~g"),
            alt.Tooltip("value:Q", title=name.replace("_", " "), format=",.4~g"),
        ],
    )
    layers = [dashed.mark_line(strokeWidth=1, opacity=0.3).encode(y=alt.Y("value:Q", title=name)), main, dots, over]
    return alt.layer(*(layers if smoothed else layers[1:])).properties(height=300)


def _dash(column: str, values: Sequence[str]) -> alt.StrokeDash:
    """Return a dash pattern a value, a second cue beside the colour; one value needs no legend."""
    patterns = [list(DASHES[i % len(DASHES)]) for i in range(len(values))]
    scale = alt.Scale(domain=list(values), range=patterns)
    return alt.StrokeDash(
        f"{column}:N", title=None, scale=scale, legend=_legend(values, 500) if len(values) > 1 else None
    )


def _legend(labels: Sequence[str], size: int = 100) -> alt.Legend:
    """Return a legend above the chart: one row where the labels fit, else one below the other; symbols of a size."""
    columns = {"columns": 1} if sum(map(len, labels)) > LEGEND_ROW else {}
    return alt.Legend(orient="top", symbolOpacity=1, symbolStrokeWidth=2, symbolSize=size, labelLimit=320, **columns)


def _ticks(largest: float) -> str:
    """Return the number format of an axis: SI prefixes from ten thousand on; below one they would say 700m for 0.7."""
    return "~s" if largest >= 10_000 else ",~r"


def difference_interval(difference: float, low: float, high: float) -> alt.LayerChart:
    """Draw the difference of two shares with its interval against "no difference", in points."""
    frame = pd.DataFrame({"difference": [100 * difference], "low": [100 * low], "high": [100 * high], "side": "B − A"})
    reach = max(abs(100 * low), abs(100 * high), 1.0) * 1.15
    x = alt.X("low:Q", title="B minus A, points", scale=alt.Scale(domain=[-reach, reach]), axis=alt.Axis(tickCount=7))
    base = alt.Chart(frame).encode(color=alt.Color("side:N", legend=None))  # the theme's first colour, light or dark
    tips = [alt.Tooltip(f"{column}:Q", format="+.1f") for column in ("difference", "low", "high")]
    return alt.layer(
        alt.Chart(pd.DataFrame({"zero": [0]})).mark_rule(color=MUTED, strokeDash=[4, 3]).encode(x="zero:Q"),
        base.mark_rule(strokeWidth=4, strokeCap="round").encode(x=x, x2="high:Q", tooltip=tips),
        base.mark_point(filled=True, size=140, opacity=1).encode(x="difference:Q", tooltip=tips),
    ).properties(height=110)


def mix_weights(mixes: pd.DataFrame) -> alt.LayerChart:
    """Draw the weights of the scalar mix after training.

    Args:
        mixes: one row a side, seed and layer: side, seed, layer (its label), weight.
    """
    sides = list(dict.fromkeys(mixes["side"]))
    layers = list(dict.fromkeys(mixes["layer"]))
    base = alt.Chart(mixes).encode(
        x=alt.X("layer:N", title=None, sort=layers, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("side:N", sort=sides),
        color=alt.Color("side:N", title=None, scale=alt.Scale(domain=sides), legend=_legend(sides)),
    )
    bars = base.mark_bar(opacity=0.55, cornerRadiusEnd=2).encode(
        y=alt.Y("mean(weight):Q", title="softmax weight", scale=alt.Scale(domainMin=0), axis=alt.Axis(format=".0%"))
    )
    seeds = base.mark_point(filled=True, size=45, opacity=1).encode(
        y="weight:Q",
        tooltip=["side:N", "layer:N", "seed:N", alt.Tooltip("weight:Q", format=".1%")],
    )
    even = alt.Chart(pd.DataFrame({"even": [1 / len(layers)]})).mark_rule(color=MUTED, strokeDash=[4, 3])
    return alt.layer(bars, seeds, even.encode(y="even:Q")).properties(height=260)


def mix_history(history: pd.DataFrame) -> alt.Chart:
    """Draw the weights of the scalar mix over training, the mean over seeds with their range.

    Args:
        history: one row a side, step, seed and layer: side, step, seed, layer, weight.
    """
    sides, layers = (list(dict.fromkeys(history[column])) for column in ("side", "layer"))
    base = alt.Chart(history).encode(
        x=alt.X("step:Q", title="step", axis=alt.Axis(format=_ticks(history["step"].max()), tickCount=5)),
        color=alt.Color("layer:N", title=None, sort=layers, legend=_legend(layers)),
        strokeDash=_dash("side", sides),
    )
    title = "softmax weight"
    line = base.mark_line(strokeWidth=2).encode(
        y=alt.Y("mean(weight):Q", title=title, scale=alt.Scale(zero=False), axis=alt.Axis(format=".0%")),
        tooltip=["side:N", "layer:N", "step:Q", alt.Tooltip("mean(weight):Q", title="weight", format=".1%")],
    )
    band = base.mark_area(opacity=0.15).encode(y=alt.Y("min(weight):Q", title=title), y2="max(weight):Q")
    return alt.layer(band, line).properties(height=260)


def efficiency(scores: pd.DataFrame, metric: str) -> alt.LayerChart:
    """Draw scores over the share of the training examples, the mean over seeds with every seed as a point.

    Args:
        scores: one row a side, fraction and seed: side, fraction, seed, score.
        metric: the title of the scores.
    """
    sides = list(dict.fromkeys(scores["side"]))
    base = alt.Chart(scores).encode(
        x=alt.X("fraction:Q", title="share of the training examples", scale=alt.Scale(type="log")),
        color=alt.Color("side:N", title=None, scale=alt.Scale(domain=sides), legend=_legend(sides)),
    )
    line = base.mark_line(strokeWidth=2).encode(y=alt.Y("mean(score):Q", title=metric, scale=alt.Scale(zero=False)))
    seeds = base.mark_point(filled=True, size=45, opacity=1).encode(
        y="score:Q",
        tooltip=["side:N", "fraction:Q", "seed:N", alt.Tooltip("score:Q", format=".1f")],
    )
    return alt.layer(line, seeds).properties(height=260)


def outcomes(counts: dict[str, int], a: str, b: str) -> alt.LayerChart:
    """Draw the 2×2 table of both right, only A, only B, both wrong as four fields."""
    both, only_a, only_b, neither = counts.values()
    total = max(sum(counts.values()), 1)
    rows = [
        ("A right", "B right", both, "agree"),
        ("A right", "B wrong", only_a, "only A right"),
        ("A wrong", "B right", only_b, "only B right"),
        ("A wrong", "B wrong", neither, "agree"),
    ]
    frame = pd.DataFrame(rows, columns=["a", "b", "count", "kind"])
    frame["text"] = [f"{count:,}  ({count / total:.0%})" for count in frame["count"]]
    base = alt.Chart(frame).encode(
        x=alt.X("b:N", title=b, sort=["B right", "B wrong"], axis=alt.Axis(labelAngle=0, orient="top", domain=False)),
        y=alt.Y("a:N", title=a, sort=["A right", "A wrong"], axis=alt.Axis(domain=False)),
    )
    fields = base.mark_rect(cornerRadius=4, stroke=None).encode(
        color=alt.Color(
            "kind:N", legend=None, scale=alt.Scale(domain=["only A right", "only B right", "agree"], range=_TINTS)
        ),
        tooltip=["a:N", "b:N", "count:Q"],
    )
    text = base.mark_text(fontSize=17, fontWeight=600, color=MUTED).encode(text="text:N")
    return alt.layer(fields, text).properties(height=220)


_TINTS = ["rgba(68,119,170,0.28)", "rgba(238,102,119,0.28)", "rgba(138,148,160,0.14)"]


def purity(layers: Sequence[str], measured: Purity) -> alt.LayerChart:
    """Draw the share of the nearest neighbours that carry the occurrence's own sense, by layer, with two baselines.

    Args:
        layers: their labels.
        measured: by layer; its `majority` is drawn dashed, its `chance` dotted.
    """
    labels = [f"{layer}\n{value:.0%}" for layer, value in zip(layers, measured.layers, strict=True)]
    frame = pd.DataFrame({"layer": labels, "purity": measured.layers})
    title = f"purity at {measured.k}"
    # The same field in every bar's colour gives them the theme's first colour, light or dark.
    base = alt.Chart(frame.assign(side="purity")).encode(
        x=alt.X("layer:N", title=None, sort=labels, axis=alt.Axis(labelAngle=0, labelExpr="split(datum.value, '\\n')")),
        y=alt.Y("purity:Q", title=title, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format=".0%", tickCount=5)),
    )
    bars = base.mark_bar(size=56, cornerRadiusEnd=3).encode(
        color=alt.Color("side:N", legend=None),
        tooltip=["layer:N", alt.Tooltip("purity:Q", title=title, format=".1%")],
    )
    rules = [
        alt.Chart(pd.DataFrame({"value": [value], "what": [what]}))
        .mark_rule(color=MUTED, strokeDash=dash, strokeWidth=1.5)
        .encode(y="value:Q", tooltip=["what:N", alt.Tooltip("value:Q", format=".1%")])
        for value, what, dash in (
            (measured.majority, "most frequent sense", [6, 4]),
            (measured.chance, "random neighbours", [1, 3]),
        )
    ]
    return alt.layer(bars, *rules).properties(height=260)


def to_svg(chart: Any, title: str) -> str:
    """Return a chart as SVG for a white page, in the palette of the light theme; made offline."""
    named = chart.properties(title=title, width=640).configure_range(category=list(PALETTE))
    return vl_convert.vegalite_to_svg(named.configure_axis(gridColor="#E6EAEE").to_json())


def last_values(metrics: pd.DataFrame) -> dict[str, float]:
    """Return the last values and the last speed, as a card of a running run shows them.

    A perplexity's name says whether it is of the sampled or of the full softmax: "train perplexity (sampled)".
    """
    found = {}
    for wanted in ("perplexity", "loss", "accuracy", "tokens_per_second"):
        rows = metrics[(metrics["name"] == wanted) & metrics["value"].notna()]
        for (split, kind), part in rows.groupby(["split", "kind"], sort=False):
            name = f"{split} {wanted} ({kind})" if kind else wanted.replace("tokens_per_second", "tokens/s")
            found[name] = float(part["value"].iloc[-1])
    return found
