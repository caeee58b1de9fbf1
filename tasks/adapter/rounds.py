"""The rounds of a run: one training, or one a fold, each with its classifier and its probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tasks.adapter.bag import bag_values
from tasks.adapter.checkpoint import State, path_of
from tasks.adapter.classifier import Classifier
from tasks.adapter.dataset import Dataset
from tasks.adapter.epochs import Epoch, Fitted, Mixes, Watch
from tasks.adapter.features import LayerSource
from tasks.adapter.finetuning import copy_of
from tasks.adapter.fit import fit, predict, steps_of_epoch
from tasks.adapter.fraction import part_of
from tasks.adapter.head import find_head
from tasks.adapter.representation import Representation
from tasks.adapter.wordvectors import WordTable
from tasks.task import Example, Round, Splits, Task
from toolkit.config import Evaluate
from toolkit.keras.bilm_layer import BiLMLayer
from toolkit.progress import Progress
from toolkit.runs.writer import RunWriter


@dataclass(frozen=True)
class Prepared:
    """A task ready for training with a model.

    Attributes:
        task, splits: what is asked.
        source: what gives the layers.
        data: all examples, the parts one behind the other.
        rows: the rows of each part, by its name.
        table: vectors that stand for x_k; None where it is the model's own.
        bilm: what each training fine-tunes a copy of; None where it is frozen.
    """

    task: Task
    splits: Splits
    source: LayerSource
    data: Dataset
    rows: dict[str, np.ndarray]
    table: WordTable | None = None
    bilm: BiLMLayer | None = None

    @property
    def examples(self) -> list[Example]:
        """All examples in the order of the rows."""
        return [example for part in self.splits.parts().values() for example in part]


@dataclass(frozen=True)
class Trained:
    """One round: a classifier, how it came about, and its probabilities of the two splits."""

    classifier: Classifier
    fitted: Fitted
    start: Mixes
    rows: dict[str, np.ndarray]
    probabilities: dict[str, list[np.ndarray]]


def train_rounds(
    prepared: Prepared,
    representation: Representation,
    own: Evaluate,
    seed: int,
    run: RunWriter,
    name: str,
    states: Sequence[State] = (),
) -> list[Trained]:
    """Train all rounds of a run one behind the other; the state behind each epoch is kept in its folder.

    Args:
        prepared, representation, own, seed: what is trained on what.
        run: is told of each epoch.
        name: for the progress bar.
        states: of the first rounds, from which these go on.
    """
    rounds, metric = prepared.splits.rounds(), prepared.task.metric
    trains = [np.concatenate([prepared.rows[part] for part in one.train]) for one in rounds]
    trains = [part_of(prepared.examples, train, own.train_fraction, seed) for train in trains]
    total = sum(own.epochs * steps_of_epoch(len(train), own) for train in trains)
    done: list[Trained] = []
    with Progress(name, total, "steps") as bar:

        def on_step() -> None:
            bar.advance(1)
            run.heartbeat(bar.count / total)

        def on_epoch(epoch: Epoch) -> None:
            run.require_mine()  # the state of this epoch is written next
            before = sum(max(passed.step for passed in trained.fitted.history) for trained in done)
            run.metric("loss", epoch.loss, before + epoch.step)
            run.metric(metric, epoch.dev_score, before + epoch.step, split="dev")
            what = f"epoch {epoch.number}" if epoch.strength is None else f"logistic regression, C {epoch.strength:g}"
            where = f"round {len(done) + 1}, " if len(rounds) > 1 else ""
            run.log(f"{where}{what}: loss {epoch.loss:.4f}, dev {metric} {epoch.dev_score:.4f}")
            run.heartbeat(bar.count / total)

        watch = Watch(on_step, on_epoch, lambda epoch: bar.advance(epoch.step))
        for number, (one, train) in enumerate(zip(rounds, trains, strict=True)):
            start = states[number] if number < len(states) else None
            of_round = one, train, watch, path_of(run.folder, number + 1), start
            done.append(_train(prepared, representation, own, seed, *of_round))
    return done


def _train(
    prepared: Prepared,
    representation: Representation,
    own: Evaluate,
    seed: int,
    one: Round,
    train: np.ndarray,
    watch: Watch,
    path: Path,
    resumed: State | None,
) -> Trained:
    task, data, table = prepared.task, prepared.data, prepared.table
    of_table = ()
    if table is not None:
        data = data.with_words(table.words_known(data.tokens_of(train)))
        of_table = table.start(seed), table.trained
    rows = {"dev": prepared.rows[one.dev], "test": prepared.rows[one.test]}
    if representation.bag:
        every = prepared.examples
        examples, dev, test = ([every[row] for row in part] for part in (train, *rows.values()))
        data = data.with_bag([train, *rows.values()], bag_values(task, examples, dev, (dev, test), own))
    bilm, width = None if prepared.bilm is None else copy_of(prepared.bilm), data.bag.shape[1]
    classifier = Classifier(
        representation,
        find_head(own.head),
        len(task.labels),
        own,
        seed,
        task.kind,
        *of_table,
        bilm=bilm,
        bag_width=width,
    )
    equal = [1 / representation.n_layers] * representation.n_layers
    start = {place: (equal, 1.0) for place in representation.places}
    fitted = fit(classifier, data, train, rows["dev"], own, seed, watch, path, resumed)
    found = {split: predict(classifier, data, part, own.batch_size) for split, part in rows.items()}
    return Trained(classifier, fitted, start, rows, found)
