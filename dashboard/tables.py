"""Tables of runs and settings as pages show them; no Streamlit."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from toolkit.runs.compare import incomparable
from toolkit.runs.describe import SHARES, in_display_units, metric_title, number, score_text, time_text
from toolkit.runs.reader import Run, RunSummary
from toolkit.runs.schema import relevant_settings

FRACTION = "evaluate.train_fraction"


def matching(
    runs: Sequence[RunSummary], text: str, kinds: Sequence[str], statuses: Sequence[str], archived: bool
) -> list[RunSummary]:
    """Return the runs that fit: every word of `text` in name, task, id or tags; empty choices let everything pass."""
    words = text.lower().split()
    return [
        run
        for run in runs
        if (archived or not run.notes.archived)
        and (not kinds or run.kind in kinds)
        and (not statuses or run.status in statuses)
        and all(word in " ".join((run.id, run.name, run.task or "", *run.notes.tags)).lower() for word in words)
    ]


def runs_frame(runs: Sequence[RunSummary], baseline: RunSummary | None) -> pd.DataFrame:
    """Return the table of runs; with a baseline, a column of differences from its score where they compare."""
    rows = []
    for run in runs:
        score = run.main_score
        row: dict[str, Any] = {
            "details": f"run_detail?run={run.id}",
            "name": run.name or run.id,
            "kind": run.kind,
            "task": run.task or "",
            "status": [run.status],
            "metric": metric_title(score) if score else "",
            "score": score_text(score) if score else "",
        }
        if baseline is not None:
            row["vs baseline"] = _difference(run, baseline)
        row["started"] = time_text(run.started)
        row["tags"] = list(run.notes.tags)
        if any(other.notes.archived for other in runs):
            row["archived"] = run.notes.archived
        rows.append(row)
    return pd.DataFrame(rows)


def settings_frame(a: Mapping[str, Any], b: Mapping[str, Any]) -> pd.DataFrame:
    """Return one row a setting of either side: setting, A, B, differs."""
    keys = dict.fromkeys([*a, *b])
    rows = [{"setting": key, "A": _text(a.get(key)), "B": _text(b.get(key))} for key in keys]
    frame = pd.DataFrame(rows, columns=["setting", "A", "B"])
    frame["differs"] = frame["A"] != frame["B"]
    return frame


def efficiency_frame(a: Sequence[RunSummary], b: Sequence[RunSummary], runs: Sequence[Run]) -> pd.DataFrame:
    """Return the scores of both sides over the share of the training examples, a row a side, fraction and seed.

    A run is of a side when nothing but that share and the seed tells its settings, task, model and data from it.

    Args:
        a, b: the runs of both sides.
        runs: all finished evaluations, the newest first.
    """
    rows = []
    for side, members in (("A", a), ("B", b)):
        configuration = next((_without_fraction(run) for run in runs if run.summary.id == members[0].id), None)
        seen = set()
        for run in runs:
            fraction, score = run.settings.get(FRACTION, 1.0), run.summary.main_score
            if score and _without_fraction(run) == configuration and (fraction, run.summary.seed) not in seen:
                seen.add((fraction, run.summary.seed))
                value = in_display_units(score["name"], score["value"])
                rows.append({"side": side, "fraction": fraction, "seed": run.summary.seed, "score": value})
    return pd.DataFrame(rows, columns=["side", "fraction", "seed", "score"])


def _without_fraction(run: Run) -> tuple[Any, ...]:
    settings = {k: repr(v) for k, v in relevant_settings("evaluate", run.settings).items() if k != FRACTION}
    return run.summary.task, run.summary.model_fingerprint, run.manifest.get("data_fingerprint"), settings


def mix_frame(runs: Sequence[RunSummary], histories: Sequence[list[dict[str, Any]]], side: str) -> pd.DataFrame:
    """Return the scalar mixes of several seeds, one row a logged step and layer.

    Returns:
        side, seed, step, layer (label), weight, gamma, last (whether it is the mix that was scored with).
    """
    rows = []
    for run, history in zip(runs, histories, strict=True):
        for number_, entry in enumerate(history):
            for layer, weight in enumerate(entry["weights"]):
                rows.append(
                    {
                        "side": side,
                        "seed": run.seed,
                        "step": entry.get("step", number_),
                        "layer": layer_label(layer),
                        "weight": weight,
                        "gamma": entry.get("gamma"),
                        "last": number_ == len(history) - 1,
                    }
                )
    return pd.DataFrame(rows, columns=["side", "seed", "step", "layer", "weight", "gamma", "last"])


def carried_on(mixes: pd.DataFrame) -> pd.DataFrame:
    """Return the mixes over training with each seed's last weights repeated at the later steps of its side.

    Seeds stop at different epochs; without this the mean over seeds would jump wherever one of them ends.

    Args:
        mixes: as from `mix_frame`, of any number of sides.

    Returns:
        side, seed, step, layer, weight.
    """
    parts = []
    for side, rows in mixes.groupby("side", sort=False):
        weights = rows.pivot_table(index="step", columns=["layer", "seed"], values="weight").ffill()
        parts.append(weights.unstack().rename("weight").reset_index().assign(side=side))
    return pd.concat(parts, ignore_index=True)


def layer_label(layer: int) -> str:
    """Return "0 token" or "layer 2"."""
    return "0 token" if layer == 0 else f"layer {layer}"


def _difference(run: RunSummary, baseline: RunSummary) -> str:
    score, other = run.main_score, baseline.main_score
    if score is None or other is None or incomparable(run, baseline):
        return ""
    if run.id == baseline.id:
        return "baseline"
    difference = in_display_units(score["name"], score["value"] - other["value"])
    return f"{difference:+.1f}" if score["name"] in SHARES else f"{'+' if difference > 0 else ''}{number(difference)}"


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def manifest_facts(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what a manifest says of where a run comes from, as label and text."""
    facts = [
        ("command", " ".join(str(part) for part in manifest.get("argv", []))),
        ("host and process", f"{manifest.get('host', '')}, {manifest.get('pid', '')}"),
        ("revision", str(manifest.get("git") or "not a checkout")),
        ("model", str(manifest.get("model_fingerprint") or "")),
        ("data", str(manifest.get("data_fingerprint") or "")),
        ("group", str(manifest.get("group", ""))),
        ("schema version", str(manifest.get("schema_version", ""))),
    ]
    facts += [(name, str(value)) for name, value in _leaves(manifest.get("extra") or {})]
    facts += [(name, str(version)) for name, version in dict(manifest.get("versions") or {}).items()]
    return [(name, text) for name, text in facts if text]


def _leaves(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Return the leaves of nested tables with their dotted names."""
    if not isinstance(value, Mapping):
        return [(name, _text(value))]
    return [leaf for key, inner in value.items() for leaf in _leaves(inner, f"{name}.{key}" if name else str(key))]
