"""Runs whose process ended before their training did: the next one of the same training goes on with them."""

import fcntl
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tasks.adapter.checkpoint import FOLDER, State, read_states
from toolkit.config import Settings
from toolkit.files import sweep
from toolkit.runs import schema
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
        with _alone(run.folder) as alone:
            if not alone or summarise(run.folder).status not in LEFT:
                continue  # another process writes it
            sweep(run.folder / FOLDER)
            states = read_states(run.folder)
            if states:
                epoch, round_ = states[-1].history[-1].number, f" of round {len(states)}" if len(states) > 1 else ""
                logger.info("%s goes on behind epoch %d%s", run.id, epoch, round_)
            return RunWriter.resume(run.folder, settings, sum(state.history[-1].step for state in states)), states
    return None


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Give whether no other process looks at a run in this way; from the writer's first word on its status tells."""
    with (folder / schema.LOG).open("a") as file:  # the one file of a run that is never replaced
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
