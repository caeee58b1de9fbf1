"""From what a user calls a run to the run: ids, their beginnings, names, folders, and groups of seeds."""

import difflib
from pathlib import Path

from toolkit.errors import UsageError
from toolkit.runs import schema
from toolkit.runs.reader import RunSummary, list_runs, summarise


def find_run(store: Path, text: str, kind: schema.Kind | None = None) -> RunSummary:
    """Return the one run that a text names: its id, a unique beginning of it, its name, or its folder.

    Args:
        store: the run store.
        text: what the user calls the run.
        kind: where the text fits several runs, those of this kind are meant.

    Raises:
        UsageError: nothing or more than one run fits; the message names the near or the fitting ones.
    """
    matches = _matches(store, text)
    if kind is not None and len(matches) > 1:
        matches = [run for run in matches if run.kind == kind] or matches
    if len(matches) > 1:
        raise UsageError(f"{text!r} fits {len(matches)} runs in {store}, say which: {_listed(matches)}")
    return matches[0]


def find_runs(store: Path, text: str) -> list[RunSummary]:
    """Return the run that a text names, or the seeds of one group where it names them together.

    "sst2-learned" names sst2-learned-s1, -s2 and -s3 when these share their group. Where a seed was run twice, the
    newest finished run of it is taken.

    Returns:
        one run, or the runs of one group by seed.

    Raises:
        UsageError: nothing fits, or runs of more than one group do.
    """
    matches = _matches(store, text)
    if len(matches) == 1:
        return matches
    if len({run.group for run in matches}) > 1:
        raise UsageError(f"{text!r} fits runs of more than one experiment in {store}, say which: {_listed(matches)}")
    return seeds_of(matches)


def seeds_of(runs: list[RunSummary]) -> list[RunSummary]:
    """Return the newest finished run of each seed, by seed; `runs` come newest first."""
    by_seed: dict[int | None, RunSummary] = {}
    for run in runs:
        if run.status == schema.DONE:
            by_seed.setdefault(run.seed, run)
    if not by_seed:
        raise UsageError(f"none of these runs is finished: {_listed(runs)}")
    return [by_seed[seed] for seed in sorted(by_seed, key=lambda seed: -1 if seed is None else seed)]


def _matches(store: Path, text: str) -> list[RunSummary]:
    runs = list_runs(store)
    ways = (
        lambda run: run.id == text,
        lambda run: run.name == text,
        lambda run: bool(run.name) and run.title == text,
        lambda run: bool(run.group) and run.group == text,
        lambda run: run.id.startswith(text),
    )
    if text:
        for way in ways:
            found = [run for run in runs if way(run)]
            if found:
                # An archived run counts only where no other has the name, as in `runs list` and the tables.
                return [run for run in found if not run.notes.archived] or found
        folder = Path(text)
        if (folder / schema.MANIFEST).is_file():
            return [summarise(folder.resolve())]
    candidates = [run for run in runs if text and text in run.id]
    if candidates:
        raise UsageError(
            f"no run {text!r} in {store}; these contain it, give an id or a whole name: {_listed(candidates)}"
        )
    names = {run.name for run in runs if run.name} | {run.id for run in runs}
    near = difflib.get_close_matches(text, names, n=5, cutoff=0.4)
    hint = f"near names: {', '.join(near)}" if near else f"{len(runs)} runs there; `toolkit runs list` shows them"
    raise UsageError(f"no run {text!r} in {store}: {hint}")


def _listed(runs: list[RunSummary]) -> str:
    shown = ", ".join(run.id for run in runs[:5])
    return shown + (f" and {len(runs) - 5} more" if len(runs) > 5 else "")
