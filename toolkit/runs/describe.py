"""Runs in words and as JSON documents: one place, so that command line and dashboard say the same."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from toolkit.metrics import METRICS
from toolkit.runs import schema
from toolkit.runs.intervals import interval_of_scores
from toolkit.runs.reader import Run, RunSummary
from toolkit.runs.schema import Metric

SHARES = frozenset({*METRICS, "f1"})  # shown times a hundred; their differences are "points"


def in_display_units(name: str, value: float) -> float:
    """Return a metric's value as people read it: shares in percent, everything else as it is."""
    return 100 * value if name in SHARES else value


def number(value: float) -> str:
    """Return a number with as many digits as a reader can use: 0.0123, 0.812, 81.2, 214, 20,000."""
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.3g}"


def score_text(metric: Metric) -> str:
    """Return "81.2 ± 1.8 (n = 1,821)": the value, half the width of its 95 % interval, and what is behind it."""
    name = metric["name"]
    text = f"{100 * metric['value']:.1f}" if name in SHARES else number(metric["value"])
    low, high, _ = interval_of_scores([metric])
    if low is not None and high is not None:
        half = in_display_units(name, high - low) / 2
        text += f" ± {half:.1f}" if name in SHARES else f" ± {number(half)}"
    if "n" in metric:
        text += f" (n = {metric['n']:,})"
    return text


def metric_title(metric: Metric) -> str:
    """Return "test accuracy (%)" or "valid perplexity, full softmax"."""
    title = f"{metric['split']} {metric['name'].replace('_', ' ')}"
    if metric["name"] in SHARES:
        title += " (×100)" if metric["name"] in METRICS and METRICS[metric["name"]].correlation else " (%)"
    return f"{title}, {metric['kind']} softmax" if metric.get("kind") in ("full", "sampled") else title


def time_text(time: datetime | None) -> str:
    """Return a UTC time to the minute, "" for none."""
    return time.strftime("%Y-%m-%d %H:%M") if time else ""


def duration_text(seconds: float) -> str:
    """Return "42 s", "12 min" or "3 h 05 min"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def run_document(run: RunSummary) -> dict[str, Any]:
    """Return the JSON document that `toolkit runs list` prints for one run."""
    return {
        "run": run.id,
        "kind": run.kind,
        "status": run.status,
        "name": run.name,
        "task": run.task,
        "group": run.group,
        "seed": run.seed,
        "started": run.started.isoformat() if run.started else None,
        "ended": run.ended.isoformat() if run.ended else None,
        "scores": list(run.metrics),
        "problem": run.problem,
        "tags": list(run.notes.tags),
        "archived": run.notes.archived,
    }


def runs_table(runs: Sequence[RunSummary], store: Path) -> str:
    """Return the lines that `toolkit runs list` prints."""
    if not runs:
        return f"no runs in {store}; `toolkit pretrain --help` shows how to make the first"
    rows = [("STATUS", "KIND", "RUN", "SCORE")]
    for run in runs:
        score = run.main_score
        text = f"{metric_title(score)} {score_text(score)}" if score else ""
        rows.append((run.status, run.kind, run.id, text if not run.problem else f"! {run.problem}"))
    return columns(rows)


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as aligned columns, two blanks apart."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(f"{c:{w}}" for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def run_details(run: Run) -> dict[str, Any]:
    """Return the JSON document that `toolkit runs show` prints."""
    return run_document(run.summary) | {
        "folder": str(run.summary.folder),
        "note": run.summary.notes.note,
        "manifest": dict(run.manifest),
        "settings": dict(run.settings),
        "results": dict(run.results),
        "files": run_files(run.summary.folder),
    }


def run_files(folder: Path) -> list[dict[str, Any]]:
    """Return the files of a run folder by name, with their sizes in bytes; hidden ones are left out."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return [{"file": path.relative_to(folder).as_posix(), "bytes": path.stat().st_size} for path in files]


def run_text(run: Run) -> str:
    """Return the lines that `toolkit runs show` prints."""
    summary, manifest = run.summary, run.manifest
    facts = [("run", summary.id), ("status", summary.status)]
    if summary.problem:
        facts.append(("problem", summary.problem))
    if summary.whereabouts:
        facts.append(("process", summary.whereabouts))
    if manifest.get("message"):
        facts.append(("message", str(manifest["message"])))
    facts += [("kind", summary.kind), ("task", summary.task or ""), ("seed", str(summary.seed))]
    facts += [("started", time_text(summary.started)), ("ended", time_text(summary.ended))]
    facts += [(metric_title(metric), score_text(metric)) for metric in summary.metrics]
    facts += [("model", summary.model_fingerprint or ""), ("tags", ", ".join(summary.notes.tags))]
    facts += [("note", summary.notes.note), ("folder", str(summary.folder))]
    blocks = [columns([fact for fact in facts if fact[1]])]
    relevant = schema.relevant_settings(summary.kind, run.settings)
    if relevant:
        blocks.append(columns([(key, str(value)) for key, value in relevant.items()]))
    return "\n\n".join(blocks)
