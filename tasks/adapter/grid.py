"""Grids of evaluations: every mix and seed on every task; what has been run is taken, what is missing is trained."""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from tasks.adapter.document import outcome_of, row_of
from tasks.adapter.features import LayerSource
from tasks.adapter.finetuning import check_finetuning
from tasks.adapter.floors import Floor, floors_of
from tasks.adapter.head import find_head
from tasks.adapter.majority import majority_of
from tasks.adapter.prepare import prepare, representations_of
from tasks.adapter.representation import Representation
from tasks.adapter.run import Outcome, inputs_of, own_settings, run_seed
from tasks.adapter.supported import check_supported
from tasks.adapter.wordvectors import TRAINED
from tasks.registry import OWN_DATA, data_fingerprint
from tasks.task import Splits, Task
from toolkit.config import Evaluate, Settings, cache_folder
from toolkit.errors import FormatError, UsageError
from toolkit.runs import schema
from toolkit.runs.compare import compare_with
from toolkit.runs.describe_comparison import comparison_document
from toolkit.runs.reader import RunSummary, list_runs, load_run, summarise

logger = logging.getLogger(__name__)

Key = tuple[str, int]
TRACING = 50_000  # tokens that are read in the time in which a graph is traced, about


@dataclass(frozen=True)
class Training:
    """One run that a grid asks for.

    Attributes:
        task, splits, source: what is learned from what.
        representation: what stands for a word.
        settings: of this very run.
        work: what its time goes with, about, see `_work`.
    """

    task: Task
    splits: Splits
    source: LayerSource
    representation: Representation
    settings: Settings
    work: float

    @property
    def key(self) -> Key:
        """Group and seed, by which a finished run is known."""
        own, marks = self.settings.evaluate, (self.source.fingerprint, data_fingerprint(self.task, self.splits))
        return schema.group_of("evaluate", self.settings, self.task.name, *marks, inputs_of(own)), own.seed

    @property
    def source_state(self) -> str:
        """What tells vectors of one state, or files of one version, from others."""
        return self.source.state


@dataclass(frozen=True)
class Grid:
    """What a grid gave.

    Attributes:
        documents: one a task.
        runs: ids of all runs, taken and trained.
        taken: how many were in the store already.
    """

    documents: list[dict[str, Any]]
    runs: list[str]
    taken: int


@dataclass
class _Pace:
    """How long trainings take, by those that have ended."""

    work: float = 0.0
    seconds: float = 0.0

    def add(self, training: Training, seconds: float) -> None:
        """Count one that has ended."""
        self.work += training.work
        self.seconds += seconds

    def left(self, trainings: Sequence[Training]) -> str:
        """Say how long these will take."""
        if not self.work or not trainings:
            return ""
        minutes = sum(training.work for training in trainings) * self.seconds / self.work / 60
        return f", about {minutes:.1f} min of training left"


def run_grid(
    pairs: Sequence[tuple[Task, LayerSource]],
    settings: Settings,
    store: Path,
    fractions: Sequence[float] = (),
    rerun: bool = False,
    floors: bool = False,
) -> Grid:
    """Evaluate every mix, part of the training examples and seed on every task, one training at a time.

    A run that has ended well in the store, of the same settings, task, data, model and seed, is taken and not trained
    again; so a grid that was killed goes on with what is missing, the training in the middle of it behind its last
    epoch. Archived runs are not taken. Two processes with the same grid share the work only as far as one finds what
    the other has finished.

    A mix whose training leaves nothing to chance, see `_seeds`, gets one run, however many seeds are asked for.

    Args:
        pairs: tasks, each with what gives its layers.
        settings: `evaluate.mix` may name several mixes, `evaluate.seeds` several seeds.
        store: the run store.
        fractions: of the training examples; none takes `evaluate.train_fraction`.
        rerun: train everything again, from the start.
        floors: also train `majority` and `bag` on each task, and compare each mix with the bag.

    Raises:
        UsageError: a task, head or mix does not go with the others; nothing has been trained then.
        DataError: a task's data cannot be had or read, or dumps are of other sentences.
        ToolkitError: a training diverged.
    """
    parts = list(fractions) or [settings.evaluate.train_fraction]
    checked = [(*pair, _representations(*pair, settings)) for pair in pairs]
    plan = [_trainings(*one, settings, parts) for one in checked]
    below = [_floors(of_task) if floors else [] for of_task in plan]
    everything = [training for pair in zip(below, plan, strict=True) for group in pair for training in group]
    outcomes = {} if rerun else _taken(everything, store)
    taken = len(outcomes)
    pace = _Pace()
    for training in everything:
        if training.key in outcomes:
            pace.add(training, load_run(outcomes[training.key].folder).results.get("seconds", 0.0))
    missing = [training for training in everything if training.key not in outcomes]
    total = len(missing)
    logger.info("%d runs: %d taken from %s, %d to train%s", len(everything), taken, store, total, pace.left(missing))
    for floor in (floor for of_task in below for floor in of_task):
        if floor in missing:
            outcomes[floor.key] = floor.run(store)
            missing.remove(floor)
    for of_task in plan:
        todo = [training for training in of_task if training.key not in outcomes]
        prepared = prepare(todo[0].task, todo[0].splits, todo[0].source, settings) if todo else None
        for training in todo:
            if not rerun and (found := _taken([training], store)):
                outcomes |= found  # another process has trained it meanwhile
            else:
                began = time.monotonic()
                run = training.representation, training.settings, training.settings.evaluate.seed, store, rerun
                outcomes[training.key] = run_seed(prepared, *run)
                pace.add(training, time.monotonic() - began)
            missing.remove(training)
            logger.info("run %d of %d has ended%s", total - len(missing), total, pace.left(missing))
    documents = [_document(of_task, of_floors, outcomes) for of_task, of_floors in zip(plan, below, strict=True)]
    return Grid(documents, [outcomes[training.key].folder.name for training in everything], taken)


def _representations(task: Task, source: LayerSource, settings: Settings) -> list[Representation]:
    check_supported(task, settings.evaluate)
    try:
        representations = representations_of(source, settings.evaluate)
        check_finetuning(source, representations, settings.evaluate)
    except UsageError as error:
        raise UsageError(f"task {task.name!r}: {error}") from None
    return representations


def _trainings(
    task: Task,
    source: LayerSource,
    representations: Sequence[Representation],
    settings: Settings,
    fractions: Sequence[float],
) -> list[Training]:
    """Load a task's examples and return its runs, by fraction, representation and seed."""
    chosen = settings.evaluate
    embed = settings.embed.model_copy(update=dict(source.embed))
    splits = task.load(settings.paths.data, cache_folder(settings))
    logger.info("%s: %s", task.name, splits.description)
    source.check(splits)
    found = []
    for fraction in fractions:
        evaluate = chosen.model_copy(update={"train_fraction": fraction})
        own = settings.model_copy(update={"embed": embed, "evaluate": evaluate})
        for representation in representations:
            seeds = _seeds(representation, evaluate)
            if len(seeds) < chosen.seeds:
                logger.info("%s, %s: nothing is left to chance, one seed says all", task.name, representation.mix)
            for seed in seeds:
                of_run = own_settings(own, representation, seed)
                found.append(Training(task, splits, source, representation, of_run, _work(splits, fraction)))
    return found


def _seeds(representation: Representation, settings: Evaluate) -> range:
    """Return the seeds of the runs of one representation; one says all where nothing is left to chance.

    That is so of a logistic regression on fixed vectors, learned from all training examples.
    """
    learned = representation.learned or (representation.x_k and settings.word_vectors.startswith(TRAINED))
    chance = learned or settings.train_fraction < 1 or not find_head(settings.head).is_linear
    return range(settings.seed, settings.seed + (settings.seeds if chance else 1))


def _work(splits: Splits, fraction: float) -> float:
    """Return what the time of a training goes with, in tokens read forward.

    A token that is learned from costs three times one that is read, and the graph of each round is traced anew.
    """
    lengths = {name: sum(len(e.tokens) + len(e.second) for e in part) for name, part in splits.parts().items()}
    learned = sum(lengths[name] for one in splits.rounds() for name in one.train)
    read = sum(lengths[one.dev] + lengths[one.test] for one in splits.rounds())
    return 3 * fraction * learned + read + TRACING * len(splits.rounds())


def _floors(trainings: Sequence[Training]) -> list[Floor]:
    """Return the floor runs of a task, for each part of the training examples."""
    first = trainings[0]
    fractions = dict.fromkeys(training.settings.evaluate.train_fraction for training in trainings)
    seeds = [training.settings.evaluate.seed for training in trainings]
    found = []
    for fraction in fractions:
        own = {"train_fraction": fraction, "seed": min(seeds), "seeds": max(seeds) - min(seeds) + 1}
        evaluate = first.settings.evaluate.model_copy(update=own)
        found += floors_of(first.task, first.splits, first.settings.model_copy(update={"evaluate": evaluate}))
    return found


def _taken(trainings: Sequence[Training | Floor], store: Path) -> dict[Key, Outcome]:
    """Return what the newest finished run of each training gave, of those that have one with its predictions."""
    asked = {training.key: training for training in trainings}
    found: dict[Key, Outcome] = {}
    for run in list_runs(store):
        key = run.group, run.seed
        if key not in asked or key in found or run.status != schema.DONE or not run.main_score or run.notes.archived:
            continue
        if load_run(run.folder).manifest["extra"].get("source_state") != asked[key].source_state:
            continue  # dumps of the same name and fingerprint with other vectors, or states that were made otherwise
        try:
            found[key] = outcome_of(run.folder, asked[key].task.metric)
        except FormatError as error:
            logger.warning("%s is not taken: %s", run.id, error)
    return found


def _document(
    trainings: Sequence[Training], floors: Sequence[Floor], outcomes: Mapping[Key, Outcome]
) -> dict[str, Any]:
    first = trainings[0]
    rows, comparisons, floor_rows, over_bag = [], [], [], []
    for fraction, of_fraction in groupby(trainings, lambda training: training.settings.evaluate.train_fraction):
        sides = []
        for _, seeds in groupby(of_fraction, lambda training: training.representation.mix):
            rows.append(_row(group := list(seeds), outcomes))
            sides.append(_side(group, outcomes))
        for mix in schema.FLOORS if floors else ():
            group = [f for f in floors if (f.mix, f.settings.evaluate.train_fraction) == (mix, fraction)]
            floor_rows.append(_row(group, outcomes))
            if mix == schema.BAG:
                compared = compare_with(_side(group, outcomes), sides)
                over_bag += [comparison_document(comparison) for comparison in compared]
        comparisons += [comparison_document(comparison) for comparison in compare_with(sides[0], sides[1:])]
    own = first.task.name.startswith(f"{OWN_DATA}-")
    return {
        "task": first.task.name,
        "metric": first.task.metric,
        "data": first.splits.description,
        "model": first.source.name,
        "model_fingerprint": first.source.fingerprint,
        "layers": first.source.n_layers,
        **({"majority": majority_of(first.splits, first.task.metric)} if own else {}),
        "rows": rows,
        "comparisons": comparisons,
        "floors": floor_rows,
        "over_bag": over_bag,
    }


def _row(group: Sequence[Training | Floor], outcomes: Mapping[Key, Outcome]) -> dict[str, Any]:
    own = group[0].settings.evaluate
    row = row_of(group[0].representation, own.head, [outcomes[training.key] for training in group])
    return row | {"train_fraction": own.train_fraction}


def _side(group: Sequence[Training | Floor], outcomes: Mapping[Key, Outcome]) -> list[RunSummary]:
    return [summarise(outcomes[training.key].folder) for training in group]
