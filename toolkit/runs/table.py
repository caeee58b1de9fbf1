"""The table of scores: representations down, tasks across, the best of each task and what may be as good."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from toolkit.config import Settings, flatten
from toolkit.errors import ToolkitError, UsageError, did_you_mean
from toolkit.files import fingerprint
from toolkit.metrics import METRICS
from toolkit.paired import SIGNIFICANCE, compare_paired
from toolkit.runs import schema
from toolkit.runs.compare import check_scores
from toolkit.runs.intervals import interval_of_scores
from toolkit.runs.reader import Run, RunSummary, load_run, read_predictions, run_folders
from toolkit.runs.schema import Metric, relevant_settings
from toolkit.stats import holm

BEST, EQUAL, WORSE, UNTESTED, EMPTY = "best", "not different", "worse", "untested", "empty"
NOT_RUN = "not run"
_SHOWN = ("evaluate.mix", "evaluate.head")  # settings with columns of their own


@dataclass(frozen=True)
class Column:
    """One task on one set of examples; scores of other examples, data, splits or metrics stand in other columns.

    Attributes:
        title: the task, with what tells its columns apart where there are several.
        task, split, metric: "" for split and metric where no run of the task has finished.
        data: fingerprint of the task's data.
        examples: names the scored examples and their gold answers; "" where no run keeps its predictions.
        n: scored examples.
        higher_is_better: the metric's direction.
    """

    title: str
    task: str
    split: str
    metric: str
    data: str | None
    examples: str
    n: int | None
    higher_is_better: bool = True


@dataclass(frozen=True)
class Row:
    """One configuration: every setting that matters, and the model, without the seed.

    Attributes:
        mix, head: of the representation and the classifier.
        model: what it is called, with its fingerprint where the name fits several.
        settings: those others that are not the same in all rows, "" for none.
    """

    mix: str
    head: str
    model: str
    settings: str


@dataclass(frozen=True)
class Cell:
    """The score of a row in a column.

    Attributes:
        value: mean over seeds; None for an empty cell.
        low, high: 95 % interval, of what `interval` says; None without one.
        interval: "over examples and 3 seeds", "over examples", or "over 3 seeds" of scores without intervals.
        seeds: how many.
        runs: ids, by seed.
        mark: BEST, EQUAL (its difference from the best is not significant), WORSE, UNTESTED or EMPTY; "" for the only
            score of a column.
        p_value, p_holm, test: of the paired test against the best of the column; corrected over the whole table.
        remark: why it is empty, untested or lacks a seed.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    interval: str = ""
    seeds: int = 0
    runs: tuple[str, ...] = ()
    mark: str = EMPTY
    p_value: float | None = None
    p_holm: float | None = None
    test: str = ""
    remark: str = NOT_RUN


@dataclass(frozen=True)
class ScoreTable:
    """Rows, columns, and a cell for each pair of them.

    Attributes:
        rows, columns: in the order to show them.
        cells: [rows][columns].
        comparisons: how many paired tests Holm's correction was over.
        notes: what to know before reading it: columns that are apart, runs that are left out.
    """

    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    cells: tuple[tuple[Cell, ...], ...]
    comparisons: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Scored:
    """A finished run with its score and, sorted by id, the examples of its split; None where it has none to read."""

    run: RunSummary
    score: Metric
    examples: pd.DataFrame | None
    problem: str

    @property
    def key(self) -> str:
        """Names examples and gold answers."""
        if self.examples is None:
            return ""
        rows = pd.util.hash_pandas_object(self.examples[["example_id", "gold"]], index=False)
        return fingerprint(rows.tolist())


def runs_for_table(store: Path, run_ids: Sequence[str] | None = None, tasks: Sequence[str] | None = None) -> list[Run]:
    """Return the evaluate runs of a store, finished or not, the oldest first.

    Args:
        store: the run store.
        run_ids: only these; None takes all that are not archived.
        tasks: only runs of these tasks; None takes all.

    Raises:
        UsageError: an id is not in the store, or no run is of one of the tasks.
    """
    folders = {folder.name: folder for folder in reversed(run_folders(store))}
    for run_id in run_ids or ():
        if run_id not in folders:
            raise UsageError(f"no run {run_id!r} in {store}: {did_you_mean(run_id, folders)}")
    runs = [load_run(folders[run_id]) for run_id in (folders if run_ids is None else run_ids)]
    runs = [run for run in runs if run.summary.kind == "evaluate"]
    if run_ids is None:
        runs = [run for run in runs if not run.summary.notes.archived]
    if tasks is None:
        return runs
    known = {run.summary.task for run in runs if run.summary.task}
    for task in tasks:
        if task not in known:
            raise UsageError(f"no evaluate run of task {task!r} in {store}: {did_you_mean(task, known)}")
    order = {task: place for place, task in enumerate(tasks)}
    return sorted((run for run in runs if run.summary.task in order), key=lambda run: order[run.summary.task or ""])


def score_table(runs: Sequence[Run]) -> ScoreTable:
    """Return the table of evaluate runs.

    A cell is the mean over the seeds of one configuration on one set of examples; of a seed that was run twice, the
    last finished run counts. The best of a column is tested against each other score of it, on the same examples in
    pairs (`toolkit.paired`), with Holm's correction over all tests of the table. Runs that have not finished leave
    their reason in the cell.

    Args:
        runs: as `runs_for_table` returns them, the oldest first; rows and columns come in their order.
    """
    usable, notes = _usable(runs)
    scored = [_scored(run) for run in usable if _finished(run)]
    columns, column_of = _columns(usable, scored)
    rows, row_of = _rows(usable)
    members: dict[tuple[int, int], dict[int | None, _Scored]] = {}
    for one in scored:
        members.setdefault((row_of[one.run.id], column_of[one.run.id]), {})[one.run.seed] = one
    groups = {place: [seeds[seed] for seed in sorted(seeds, key=str)] for place, seeds in members.items()}
    cells = {place: _cell(group) for place, group in groups.items()}
    for run in usable:
        if not _finished(run):
            _remark_unfinished(run, row_of[run.summary.id], columns, groups, cells)
    comparisons = _mark(cells, groups, columns)
    grid = tuple(tuple(cells.get((i, j), Cell()) for j in range(len(columns))) for i in range(len(rows)))
    return ScoreTable(tuple(rows), tuple(columns), grid, comparisons, (*_apart(columns), *notes))


def _usable(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    usable, notes = [], []
    for run in runs:
        if run.summary.status == schema.UNREADABLE or not run.settings or run.summary.task is None:
            problem = run.summary.problem or "it names no task or no settings"
            notes.append(f"Left out, since it belongs to no row: {run.summary.id}: {problem}.")
        else:
            usable.append(run)
    return usable, notes


def _finished(run: Run) -> bool:
    score = run.summary.main_score
    return run.summary.status == schema.DONE and score is not None and _is_possible(score)


def _is_possible(score: Metric) -> bool:
    """Return whether a score is a finite number and one that its metric can give."""
    low, high = METRICS[score["name"]].bounds if score["name"] in METRICS else (-math.inf, math.inf)
    return math.isfinite(score["value"]) and low <= score["value"] <= high


def _scored(run: Run) -> _Scored:
    summary, score = run.summary, run.summary.main_score
    assert score is not None
    try:
        frame = read_predictions(summary.folder, ["example_id", "split", "gold", "predicted"])
        frame = frame[frame["split"] == score["split"]].sort_values("example_id")
        if frame.empty:
            return _Scored(summary, score, None, f"no test: {summary.id} keeps no {score['split']} predictions")
        if score["name"] in METRICS:
            gold, predicted = (frame[name].to_numpy(object) for name in ("gold", "predicted"))
            check_scores([summary], score["name"], score["split"], gold, predicted[None])
    except ToolkitError as error:
        return _Scored(summary, score, None, f"no test: {error}")
    known = score["name"] in METRICS
    return _Scored(summary, score, frame, "" if known else f"no test: {score['name']} cannot be had from predictions")


def _columns(usable: Sequence[Run], scored: Sequence[_Scored]) -> tuple[list[Column], dict[str, int]]:
    """Return the columns, and the number of the column of each finished run."""
    data_of = {run.summary.id: run.manifest.get("data_fingerprint") for run in usable}
    found: dict[tuple[Any, ...], Column] = {}
    column_of: dict[str, tuple[Any, ...]] = {}
    for one in sorted(scored, key=lambda one: one.examples is None):  # those without predictions join others
        run, score = one.run, one.score
        head = (run.task, data_of[run.id], score["split"], score["name"], score.get("n"))
        alike = [key for key in found if key[:5] == head]
        key = (*head, one.key) if one.examples is not None or not alike else alike[0]
        up = score.get("higher_is_better", True)
        found.setdefault(
            key, Column(run.task or "", run.task or "", head[2], head[3], head[1], one.key[:8], head[4], up)
        )
        column_of[run.id] = key
    for run in usable:
        task, data = run.summary.task or "", data_of[run.summary.id]
        if not any(key[0] == task and data in (None, key[1]) for key in found):
            found[task, data] = Column(task, task, "", "", data, "", None)
    order = list(dict.fromkeys(run.summary.task for run in usable))
    keys = sorted(found, key=lambda key: order.index(key[0]))
    titled = _titled([found[key] for key in keys])
    return titled, {run: keys.index(key) for run, key in column_of.items()}


def _titled(columns: Sequence[Column]) -> list[Column]:
    """Name the columns of one task by as much as tells them apart."""
    titled = []
    for column in columns:
        same = [other for other in columns if other.task == column.task]
        parts: list[str] = []
        seen: list[str] = []
        for name, text in (
            ("split", column.split),
            ("metric", column.metric),
            ("n", f"{column.n} examples" if column.n else ""),
            ("data", f"data {(column.data or 'unknown')[:8]}"),
            ("examples", f"examples {column.examples or 'unknown'}"),
        ):
            if len({tuple(getattr(other, part) for part in seen) for other in same}) == len(same):
                break
            if len({getattr(other, name) for other in same}) > 1:
                seen.append(name)
                parts.append(text or "nothing finished")
        titled.append(replace(column, title=f"{column.task} ({', '.join(parts)})" if parts else column.task))
    return titled


def _apart(columns: Sequence[Column]) -> list[str]:
    tasks = dict.fromkeys(column.task for column in columns)
    counts = {task: sum(column.task == task for column in columns) for task in tasks}
    return [
        f"{task} stands in {count} columns: its runs differ in data, examples, split or metric and are never mixed."
        for task, count in counts.items()
        if count > 1
    ]


def _rows(usable: Sequence[Run]) -> tuple[list[Row], dict[str, int]]:
    """Return the rows, and the number of the row of each run."""
    defaults = flatten(Settings().model_dump(mode="json")) | schema.BEFORE
    flat: dict[str, dict[str, Any]] = {}
    models: dict[str, tuple[str, str]] = {}
    row_of: dict[str, str] = {}
    for run in usable:
        settings = relevant_settings("evaluate", defaults | run.settings)
        model = run.manifest.get("model_fingerprint") or ""
        key = fingerprint([sorted((name, repr(value)) for name, value in settings.items()), model])
        flat.setdefault(key, settings)
        models.setdefault(key, (_model_name(run.manifest.get("extra") or {}), model))
        row_of[run.summary.id] = key
    differing = [
        name
        for name in dict.fromkeys(name for settings in flat.values() for name in settings)
        if name not in _SHOWN and len({repr(one[name]) for one in flat.values() if name in one}) > 1
    ]
    rows = {}
    for key, settings in flat.items():
        name, model = models[key]
        if len({other for called, other in models.values() if called == name}) > 1 or not name:
            name = f"{name} {model[:8]}".strip() or "-"
        others = ", ".join(_setting(field, settings[field]) for field in differing if field in settings)
        rows[key] = Row(str(settings["evaluate.mix"]), str(settings["evaluate.head"]), name, others)
    keys = sorted(rows, key=lambda key: (rows[key].model, rows[key].head))
    return [rows[key] for key in keys], {run: keys.index(key) for run, key in row_of.items()}


def _setting(field: str, value: object) -> str:
    section, key = field.split(".", 1)
    return f"{key} {value}" if section == schema.INPUTS else f"{key}={value}"


def _model_name(extra: Mapping[str, Any]) -> str:
    """Return the last part of a model's path that says something: a run's exported model is called as the run."""
    path = Path(str(extra.get("model") or ""))
    return path.parent.name if path.name == schema.MODEL and path.parent.name else path.name


def _cell(group: Sequence[_Scored]) -> Cell:
    values = [one.score["value"] for one in group]
    low, high, interval = interval_of_scores([one.score for one in group])
    remark = "; ".join(dict.fromkeys(one.problem for one in group if one.problem))
    return Cell(
        value=float(np.mean(values)),
        low=low,
        high=high,
        interval=interval,
        seeds=len(group),
        runs=tuple(one.run.id for one in group),
        mark="",
        remark=remark,
    )


def _remark_unfinished(
    run: Run,
    row: int,
    columns: Sequence[Column],
    groups: Mapping[tuple[int, int], Sequence[_Scored]],
    cells: dict[tuple[int, int], Cell],
) -> None:
    """Say in the cells where a run that has not finished belongs what became of it."""
    summary, data = run.summary, run.manifest.get("data_fingerprint")
    why = run.manifest.get("message") or summary.problem
    if not why and summary.status == schema.DONE:
        score = summary.main_score
        why = f"its score is {score['value']}" if score else "it has no score"
    text = f"seed {summary.seed} {summary.status}" + (f": {why}" if why else "")
    for number, column in enumerate(columns):
        seeds = {one.run.seed for one in groups.get((row, number), ())}
        if column.task == summary.task and data in (None, column.data) and summary.seed not in seeds:
            cell = cells.get((row, number), Cell())
            known = "" if cell.remark == NOT_RUN else cell.remark
            cells[row, number] = replace(cell, remark="; ".join(filter(None, dict.fromkeys([known, text]))))


def _mark(
    cells: dict[tuple[int, int], Cell],
    groups: Mapping[tuple[int, int], Sequence[_Scored]],
    columns: Sequence[Column],
) -> int:
    """Mark the best of each column and what is not significantly different from it; return the number of tests."""
    best_of: dict[int, tuple[int, int]] = {}
    for number, column in enumerate(columns):
        places = [place for place in groups if place[1] == number]
        if len(places) > 1:
            sign = 1 if column.higher_is_better else -1
            best_of[number] = max(places, key=lambda place: (sign * (cells[place].value or 0.0), -place[0]))
    others = [place for place in groups if place[1] in best_of and place not in best_of.values()]
    tests = {}
    for place in others:
        best = groups[best_of[place[1]]]
        lacking = next((one.problem for one in (*groups[place], *best) if one.problem), "")
        if lacking:
            remark = cells[place].remark or lacking
            cells[place] = replace(cells[place], mark=UNTESTED, remark=remark)
        else:
            gold, *sides = (best[0].examples["gold"].to_numpy(object), _predicted(best), _predicted(groups[place]))
            tests[place] = compare_paired(METRICS[columns[place[1]].metric], gold, *sides)
    adjusted = holm([pair.p_value for pair in tests.values()])
    for (place, pair), p_holm in zip(tests.items(), adjusted, strict=True):
        mark = WORSE if p_holm < SIGNIFICANCE else EQUAL
        cells[place] = replace(cells[place], mark=mark, p_value=pair.p_value, p_holm=float(p_holm), test=pair.test)
    for place in best_of.values():
        cells[place] = replace(cells[place], mark=BEST)
    return len(tests)


def _predicted(group: Sequence[_Scored]) -> np.ndarray:
    return np.stack([one.examples["predicted"].to_numpy(object) for one in group])
