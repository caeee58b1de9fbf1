"""What trivial methods reach, as runs of their own: the majority label, and a bag of words."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tasks.adapter.bag import VERSION, Bag, TagBag, majority
from tasks.adapter.dataset import answers_of
from tasks.adapter.fraction import part_of
from tasks.adapter.results import metric_of, predictions_of
from tasks.adapter.run import REPORTED, Outcome
from tasks.registry import data_fingerprint
from tasks.task import Example, Round, Splits, Task
from toolkit.config import Settings
from toolkit.metrics import METRICS
from toolkit.runs import schema
from toolkit.runs.writer import RunWriter

logger = logging.getLogger(__name__)

HEADS = {schema.MAJORITY: "none", schema.BAG: "linear"}


@dataclass(frozen=True)
class Described:
    """A floor in place of a `Representation`, as far as a row describes it."""

    mix: str
    shape_text: str
    x_k: bool = False
    learned: bool = False


@dataclass(frozen=True)
class Floor:
    """One floor run that a grid asks for; it depends on no model.

    Attributes:
        task, splits: what is learned.
        settings: of this very run.
    """

    task: Task
    splits: Splits
    settings: Settings
    source_state: None = None  # no vectors
    work: float = 0.0  # next to a training it takes no time

    @property
    def mix(self) -> str:
        """Which floor it is."""
        return self.settings.evaluate.mix

    @property
    def representation(self) -> Described:
        """What a row says of it."""
        texts = {schema.MAJORITY: "the most frequent label of train"}
        tags, words = "the most frequent tag of each word", "TF-IDF of word 1- and 2-grams"
        return Described(self.mix, texts.get(self.mix) or (tags if self.task.kind == "tagging" else words))

    @property
    def key(self) -> tuple[str, int]:
        """Group and seed, by which a finished run is known."""
        group = schema.group_of(
            "evaluate", self.settings, self.task.name, None, data_fingerprint(self.task, self.splits), self.inputs
        )
        return group, self.settings.evaluate.seed

    @property
    def inputs(self) -> dict[str, str]:
        """What the predictions depend on besides settings and data."""
        return {"floor": VERSION}

    def run(self, store: Path) -> Outcome:
        """Train it, score it on dev and test, and write all of it to a run folder."""
        task, own = self.task, self.settings.evaluate
        fraction = "" if own.train_fraction == 1 else f"-{own.train_fraction:g}-of-train"
        name = f"{task.name}-{self.mix}{fraction}-s{own.seed}"
        extra = {
            "task": task.name,
            "task_version": task.version,
            "mix": self.mix,
            "x_k": False,
            "head": own.head,
            "representation": self.representation.shape_text,
            "labels": list(task.labels),
            "data": self.splits.description,
            schema.INPUTS: self.inputs,
        }
        marks = None, data_fingerprint(task, self.splits)
        with RunWriter.start(store, "evaluate", name, self.settings, own.seed, *marks, extra) as run:
            parts, strengths = self.splits.parts(), []
            found: dict[str, list[tuple[Example, np.ndarray]]] = {split: [] for split in REPORTED}
            for one in self.splits.rounds():
                probabilities, strength = self._round(one, parts)
                strengths += [] if strength is None else [strength]
                for split, part in (("dev", one.dev), ("test", one.test)):
                    found[split] += list(zip(parts[part], probabilities[split], strict=True))
            frames, metrics, gold, answers = [], [], {}, {}
            for split in REPORTED:
                examples, probabilities = zip(*found[split], strict=True)
                answers[split] = answers_of(task.kind, task.labels, probabilities)
                gold[split] = np.array([example.gold for example in examples], object)
                frames.append(predictions_of(examples, task.kind, split, probabilities, answers[split]))
                metrics.append(metric_of(METRICS[task.metric], gold[split], split, answers[split]))
            run.predictions(pd.concat(frames, ignore_index=True))
            seconds = round(run.seconds, 1)
            run.results({"metrics": metrics[::-1], "mixes": {}, "strengths": strengths, "seconds": seconds})
        dev, test = (100 * metric["value"] for metric in metrics)
        logger.info("%s: dev %.1f, test %.1f, %.0f s", name, dev, test, seconds)
        return Outcome(run.folder, task.metric, gold, answers, {})

    def _round(
        self, one: Round, parts: dict[str, list[Example]]
    ) -> tuple[dict[str, Sequence[np.ndarray]], float | None]:
        """Return the probabilities of dev and test after one training, and C where there is one."""
        own, task = self.settings.evaluate, self.task
        examples = [example for part in one.train for example in parts[part]]
        train = [
            examples[row] for row in part_of(examples, np.arange(len(examples)), own.train_fraction, own.seed).tolist()
        ]
        held_out = {"dev": parts[one.dev], "test": parts[one.test]}
        if self.mix == schema.MAJORITY:
            shares = majority(task, train)
            tagging = task.kind == "tagging"
            return {
                split: [np.tile(shares, (len(example.tokens), 1)) if tagging else shares for example in part]
                for split, part in held_out.items()
            }, None
        bag = (
            TagBag(task.labels, train)
            if task.kind == "tagging"
            else Bag(task.labels, train, own).select(task, held_out["dev"])
        )
        return {split: bag.probabilities(part) for split, part in held_out.items()}, getattr(bag, "strength", None)


def floors_of(task: Task, splits: Splits, settings: Settings) -> list[Floor]:
    """Return the floor runs of a task: majority and bag, each with one seed unless seeds draw other examples.

    Args:
        task, splits: what is learned.
        settings: `evaluate.train_fraction`, `class_weights`, `seed`, `seeds`; the others are of no account.
    """
    own = settings.evaluate
    seeds = own.seeds if own.train_fraction < 1 else 1
    return [
        Floor(task, splits, settings.model_copy(update={"evaluate": own.model_copy(update=update)}))
        for mix in schema.FLOORS
        for seed in range(own.seed, own.seed + seeds)
        for update in ({"mix": mix, "head": HEADS[mix], "seed": seed, "seeds": 1, "x_k": False},)
    ]
