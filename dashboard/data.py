"""The only cached readers; keys are path, time of change and size, never the data itself."""

from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from toolkit.config import resolve
from toolkit.runs import schema
from toolkit.runs.compare import Comparison, compare_runs
from toolkit.runs.reader import RunSummary, list_runs, read_layers, read_metrics, run_folder, summarise
from toolkit.senses.neighbours import Occurrences, Purity, load, purity_at_k

Stamp = tuple[str, int, int]


def store_path() -> Path:
    """Return the run store: `paths.runs` of the settings, which TOOLKIT_RUNS overrides, from the working folder."""
    return resolve().settings.paths.runs.expanduser().resolve()


def runs(with_archived: bool = False) -> list[RunSummary]:
    """Return the store's runs, newest first; three small files each, so nothing is cached and a status never old."""
    return [run for run in list_runs(store_path()) if with_archived or not run.notes.archived]


def run_by_id(run_id: str) -> RunSummary:
    """Return one run by an id that came from a URL or a widget; UsageError when the store has no such run."""
    return summarise(run_folder(store_path(), run_id))


def stamp(path: Path) -> Stamp:
    """Return what changes when a file does; zeros for a file that is not there."""
    if not path.exists():
        return (str(path), 0, 0)
    state = path.stat()
    return (str(path), state.st_mtime_ns, state.st_size)


def metrics_of(run: RunSummary) -> pd.DataFrame:
    """Return a run's metrics.jsonl as a table."""
    return _metrics(stamp(run.folder / schema.METRICS))


def layers_of(run: RunSummary) -> list[dict[str, Any]]:
    """Return a run's scalar mix over training; FormatError when the file is damaged."""
    return _layers(stamp(run.folder / schema.LAYERS))


def comparison_of(runs_a: list[RunSummary], runs_b: list[RunSummary]) -> Comparison:
    """Return the comparison of two runs or groups; errors as `toolkit.runs.compare.compare_runs`."""
    files = (schema.MANIFEST, schema.CONFIG, schema.RESULTS, schema.PREDICTIONS)
    stamps = tuple(tuple(stamp(run.folder / name) for run in side for name in files) for side in (runs_a, runs_b))
    return _comparison(stamps, runs_a, runs_b)


def occurrences_of(run: RunSummary) -> Occurrences:
    """Return a senses run's occurrences, shared by all sessions and read only; FormatError when missing or damaged."""
    return _occurrences(stamp(run.folder / schema.OCCURRENCES))


def purity_of(path: Path, word: str, k: int) -> Purity | None:
    """Return the purity of a word's neighbourhoods in an occurrences file, see `purity_at_k`."""
    return _purity(stamp(path), word, k)


@st.cache_resource(max_entries=4, show_spinner="Reading vectors …")
def _occurrences(of: Stamp) -> Occurrences:
    return load(Path(of[0]))


@st.cache_data(max_entries=500, show_spinner="Measuring …")
def _purity(of: Stamp, word: str, k: int) -> Purity | None:
    return purity_at_k(_occurrences(of), word, k)


@st.cache_data(max_entries=200, show_spinner=False)
def _metrics(of: Stamp) -> pd.DataFrame:
    return read_metrics(Path(of[0]).parent)


@st.cache_data(max_entries=200, show_spinner=False)
def _layers(of: Stamp) -> list[dict[str, Any]]:
    return read_layers(Path(of[0]).parent)


@st.cache_data(max_entries=50, show_spinner="Comparing …")
def _comparison(stamps: tuple[Any, ...], _a: list[RunSummary], _b: list[RunSummary]) -> Comparison:
    return compare_runs(_a, _b)
