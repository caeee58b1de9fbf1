"""From what a user calls a senses run to its occurrences, and from these to their model."""

from pathlib import Path

from toolkit.errors import UsageError
from toolkit.runs import schema
from toolkit.runs.find import find_run
from toolkit.runs.reader import RunSummary, list_runs
from toolkit.senses.occurrencefile import Occurrences


def find_senses(store: Path, text: str) -> tuple[RunSummary, Path]:
    """Return a senses run and where its occurrences should lie.

    Raises:
        UsageError: nothing or more than one run is called so, or the run is of another kind.
    """
    run = find_run(store, text, "senses")
    if run.kind and run.kind != "senses":
        raise UsageError(f"run {run.id} is of the kind {run.kind}: occurrences are in runs of `toolkit senses index`")
    return run, run.folder / schema.OCCURRENCES


def model_of(occurrences: Occurrences, store: Path) -> Path:
    """Return the folder or zip of the model that made the vectors: where it was, else in a pretrain run of the store.

    Raises:
        UsageError: it is in neither place, or the vectors came from a dump.
    """
    if "embeddings" in occurrences.attributes:
        dump = occurrences.attributes["embeddings"]
        raise UsageError(f"the vectors are of the dump {dump}, a free sentence has none: take --sentence")
    place = Path(str(occurrences.attributes.get("model", "")))
    if place.is_file() or (place / "options.json").is_file():
        return place
    for run in list_runs(store):
        if run.kind == "pretrain" and run.model_fingerprint == occurrences.model_fingerprint:
            return run.folder / schema.MODEL
    raise UsageError(f"the model {occurrences.model_fingerprint} is not at {place} any more, nor in a run of {store}")
