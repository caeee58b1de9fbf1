"""Charts and the tables behind them: what is drawn, not how it looks."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard import charts, tables
from toolkit.runs.reader import METRIC_COLUMNS
from toolkit.senses.neighbours import Purity


def metrics(rows: list[dict[str, object]]) -> pd.DataFrame:
    """Return rows as `read_metrics` would."""
    full = [{"name": "perplexity", "split": "train", "kind": ""} | row for row in rows]
    return pd.DataFrame(full, columns=list(METRIC_COLUMNS)).astype(METRIC_COLUMNS)


def training(n: int) -> pd.DataFrame:
    """Return a falling curve of n steps with a full-softmax value at every tenth."""
    rows = [
        {"value": 5000 / step, "step": step, "tokens": 100 * step, "seconds": 6 * step, "kind": "sampled"}
        for step in range(1, n + 1)
    ]
    rows += [{"value": 6000 / step, "step": step, "split": "valid", "kind": "full"} for step in range(10, n + 1, 10)]
    return metrics(rows)


def layers_of(chart: object) -> list[dict]:
    return chart.to_dict()["layer"]  # type: ignore[attr-defined]


def test_sampled_and_full_perplexity_are_two_lines_that_say_so() -> None:
    points = charts.curve_points(training(50), "perplexity", "step", 0)
    assert set(points["line"]) == {"train, sampled softmax", "valid, full softmax"}


def test_no_smoothing_draws_the_values_themselves() -> None:
    points = charts.curve_points(training(50), "perplexity", "step", 0)
    assert (points["smooth"] == points["value"]).all()


def test_time_is_drawn_in_minutes_and_rows_without_the_axis_are_left_out() -> None:
    points = charts.curve_points(training(50), "perplexity", "seconds", 0)
    assert points["x"].tolist() == pytest.approx([0.1 * step for step in range(1, 51)])
    assert set(points["line"]) == {"train, sampled softmax"}  # the others have no seconds


@given(st.floats(-1e6, 1e6), st.integers(1, 40), st.floats(0.1, 50))
def test_smoothing_leaves_a_constant_alone(value: float, n: int, half_life: float) -> None:
    assert charts.smooth(np.full(n, value), np.arange(n), half_life) == pytest.approx(np.full(n, value), rel=1e-9)


def test_smoothing_starts_at_the_first_value_and_weighs_by_steps_not_rows() -> None:
    values, half_life = np.array([8.0, 0.0]), 10.0
    near, far = (charts.smooth(values, np.array([0, step]), half_life) for step in (10, 100))
    assert near[0] == far[0] == 8.0
    assert near[1] == pytest.approx(8 * 0.5 / 1.5)
    assert far[1] < 0.01


def test_smoothing_goes_on_behind_a_gap() -> None:
    result = charts.smooth(np.array([2.0, np.nan, np.inf, 2.0]), np.arange(4), 3)
    assert result[[0, 3]].tolist() == [2.0, 2.0]
    assert np.isnan(result[[1, 2]]).all()


def test_thinning_keeps_spikes_ends_and_order() -> None:
    values = np.random.default_rng(1).normal(size=50_000)
    values[31_415], values[27_182] = 99.0, -99.0
    thin = charts.thin(pd.DataFrame({"x": np.arange(50_000), "value": values}))
    assert len(thin) <= charts.MAX_POINTS
    assert {0, 31_415, 27_182, 49_999} <= set(thin["x"])
    assert all(a < b for a, b in pairwise(thin["x"]))


def test_a_curve_of_nothing_but_gaps_can_be_thinned() -> None:
    assert len(charts.thin(pd.DataFrame({"x": range(5000), "value": np.nan}))) == 2


def test_the_raw_curve_stands_behind_a_smoothed_one_only() -> None:
    points = charts.curve_points(training(50), "perplexity", "step", 5).assign(run="a")
    plain, smoothed = (charts.curves(points, ["a"], "perplexity", "step", False, on) for on in (False, True))
    assert len(layers_of(smoothed)) == len(layers_of(plain)) + 1
    assert layers_of(smoothed)[0]["encoding"]["y"]["field"] == "value"


def test_a_log_axis_leaves_out_what_has_no_logarithm() -> None:
    rows = [{"value": value, "step": i} for i, value in enumerate((0.0, -1.0, float("nan"), 10.0))]
    points = charts.curve_points(metrics(rows), "perplexity", "step", 0).assign(run="a")
    spec = charts.curves(points, ["a"], "perplexity", "step", True, False).to_dict()
    (drawn,) = spec["datasets"].values()
    assert [row["value"] for row in drawn] == [10.0]
    assert spec["layer"][0]["encoding"]["y"]["scale"]["type"] == "log"


def test_colours_follow_the_order_of_selection() -> None:
    points = pd.concat([charts.curve_points(training(20), "perplexity", "step", 0).assign(run=run) for run in "ab"])
    spec = charts.curves(points, ["b", "a"], "perplexity", "step", False, False).to_dict()
    assert spec["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["b", "a"]


def test_a_single_value_can_be_seen() -> None:
    rows = [{"name": "perplexity", "value": 200.0, "split": "valid", "kind": "full", "step": 5}]
    points = charts.curve_points(metrics(rows), "perplexity", "step", 0).assign(run="a")
    svg = charts.to_svg(charts.curves(points, ["a"], "perplexity", "step", False, False), "one value")
    assert 'aria-roledescription="point"' in svg


def test_labels_too_long_for_a_row_stand_below_each_other() -> None:
    for runs, columns in ((["a", "b"], None), (["rotten_tomatoes-learned-bilstm-s1", "rotten_tomatoes-none-s1"], 1)):
        points = pd.concat([charts.curve_points(training(9), "perplexity", "step", 0).assign(run=run) for run in runs])
        spec = charts.curves(points, runs, "perplexity", "step", False, False).to_dict()
        assert spec["layer"][0]["encoding"]["color"]["legend"].get("columns") == columns


def test_perplexity_is_steep_and_accuracy_is_not() -> None:
    assert charts.is_steep(training(200), "perplexity")
    rows = [{"name": "accuracy", "value": value} for value in (0.5, 0.9, float("nan"), 0.0)]
    assert not charts.is_steep(metrics(rows), "accuracy")
    assert not charts.is_steep(metrics(rows), "perplexity")


def test_shares_are_not_written_in_thousandths() -> None:
    for scale, form in ((1.0, ",~r"), (50_000.0, "~s")):
        points = charts.curve_points(training(20), "perplexity", "step", 0).assign(run="a")
        points["value"] *= scale / points["value"].max()
        spec = charts.curves(points, ["a"], "perplexity", "step", False, False).to_dict()
        assert spec["layer"][0]["encoding"]["y"]["axis"]["format"] == form


def test_the_interval_of_a_difference_is_drawn_in_points_around_zero() -> None:
    spec = charts.difference_interval(0.05, 0.03, 0.07).to_dict()
    low, high = spec["layer"][1]["encoding"]["x"]["scale"]["domain"]
    assert low == -high
    rows = [row for data in spec["datasets"].values() for row in data if "low" in row]
    assert [rows[0][key] for key in ("low", "difference", "high")] == pytest.approx([3, 5, 7])


def test_the_four_fields_hold_the_four_counts() -> None:
    counts = {"both right": 7, "only A right": 1, "only B right": 2, "both wrong": 0}
    (rows,) = charts.outcomes(counts, "A", "B").to_dict()["datasets"].values()
    assert {(row["a"], row["b"]): row["count"] for row in rows} == {
        ("A right", "B right"): 7,
        ("A right", "B wrong"): 1,
        ("A wrong", "B right"): 2,
        ("A wrong", "B wrong"): 0,
    }


def test_no_example_at_all_still_draws() -> None:
    charts.outcomes(dict.fromkeys(("both right", "only A right", "only B right", "both wrong"), 0), "A", "B").to_dict()


def test_purity_is_drawn_with_its_two_baselines() -> None:
    drawing = charts.purity(["0 token", "layer 1"], Purity([0.5, 0.9], 0.6, 0.52, 40, 2, 10))
    rows = [row for data in drawing.to_dict()["datasets"].values() for row in data]
    assert [row["purity"] for row in rows if "purity" in row] == [0.5, 0.9]
    assert [row["value"] for row in rows if "value" in row] == [0.6, 0.52]


def test_svg_is_made_offline_and_names_the_chart() -> None:
    svg = charts.to_svg(charts.difference_interval(0.05, 0.03, 0.07), "B minus A")
    assert svg.startswith("<svg")
    assert "B minus A" in svg


def test_a_card_shows_the_last_values_and_the_speed_and_which_softmax_they_are_of() -> None:
    rows = [{"value": 9.0, "step": 1, "kind": "sampled"}, {"value": 7.0, "step": 2, "kind": "sampled"}]
    rows += [{"value": 90.0, "step": 2, "split": "valid", "kind": "full"}]
    rows += [{"name": "tokens_per_second", "value": 500.0}]
    assert charts.last_values(metrics(rows)) == {
        "train perplexity (sampled)": 7.0,
        "valid perplexity (full)": 90.0,
        "tokens/s": 500.0,
    }


def test_a_seed_that_stopped_early_keeps_its_last_weights_in_the_mean() -> None:
    rows = [("A", 1, 0, 0.5), ("A", 1, 10, 0.4), ("A", 2, 0, 0.5), ("A", 2, 10, 0.6), ("A", 2, 20, 0.8)]
    rows = [
        (*row[:3], layer, weight) for row in rows for layer, weight in (("0 token", row[3]), ("layer 1", 1 - row[3]))
    ]
    frame = tables.carried_on(pd.DataFrame(rows, columns=["side", "seed", "step", "layer", "weight"]))
    token = frame[frame["layer"] == "0 token"].groupby("step")["weight"].mean()
    assert token.round(6).to_dict() == {0: 0.5, 10: 0.5, 20: 0.6}
    assert frame.groupby(["step", "seed"])["weight"].sum().round(6).eq(1).all()
