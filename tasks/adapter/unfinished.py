"""Runs whose process ended before their training did: the next one of the same training goes on with them."""

import logging
from pathlib import Path

from tasks.adapter.checkpoint import FOLDER, State, read_states
from toolkit.config import Settings
from toolkit.errors import UsageError
from toolkit.files import sweep
from toolkit.runs import schema
from toolkit.runs.lock import RunLock
from toolkit.runs.reader import list_runs, load_run, summarise
from toolkit.runs.writer import RunWriter

logger = logging.getLogger(__name__)

LEFT = (schema.CRASHED, schema.KILLED, schema.STOPPED, schema.FAILED)


def taken_over(
    store: Path, group: str, seed: int, source_state: str, settings: Settings
) -> tuple[RunWriter, list[State]] | None:
    """Take over the newest run of a training that was left in the middle; None where there is none.

    Args:
        store: the run store.
        group, seed: of the training.
        source_state: see `LayerSource`; a run on other vectors is another training.
        settings: of the run.

    Returns:
        the run to write to, and the states of its rounds: of those that had ended and the one that it was at.
    """
    for run in list_runs(store):
        if (run.group, run.seed) != (group, seed) or run.notes.archived or not (run.folder / FOLDER).is_dir():
            continue
        if load_run(run.folder).manifest.get("extra", {}).get("source_state") != source_state:
            continue
        try:
            lock = RunLock(run.folder)
        except UsageError:
            continue  # another process writes it
        taken = False
        try:
            if summarise(run.folder).status not in LEFT:
                continue
            sweep(run.folder / FOLDER)
            states = read_states(run.folder)
            if states:
                epoch, round_ = states[-1].history[-1].number, f" of round {len(states)}" if len(states) > 1 else ""
                logger.info("%s goes on behind epoch %d%s", run.id, epoch, round_)
            step = sum(state.history[-1].step for state in states)
            writer, taken = RunWriter.resume(run.folder, settings, step, lock), True
            return writer, states
        finally:
            if not taken:
                lock.release()
    return None
