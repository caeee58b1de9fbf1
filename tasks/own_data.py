"""A user's labelled data as a task without code: a table with a text and a label a row."""

import logging
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tasks.registry import OWN_DATA, find_task
from tasks.tables import Row, is_table, rows
from tasks.task import Example, Splits, Task, share
from toolkit.config import Settings, Text
from toolkit.errors import DataError, UsageError, did_you_mean
from toolkit.text.corpus import near, split_roles
from toolkit.text.tokenize import Tokenizer, detect_input, method

logger = logging.getLogger(__name__)

PARTS = ("train", "dev", "test")
SPLIT_NAMES = {"train": "train", "training": "train", "test": "test", "testing": "test"}
SPLIT_NAMES |= dict.fromkeys(("dev", "development", "valid", "validation", "val"), "dev")
OWN_METRICS = ("accuracy", "macro_f1", "matthews")
HELD_OUT = 0.1  # of the different texts, for dev and for test, where no split is given
SAMPLE = 2_000  # texts that tell raw from tokenised


@dataclass(frozen=True)
class Columns:
    """The columns that are read.

    Attributes:
        text: raw or tokenised text.
        label: any value; equal ones are one class.
        split: "train", "dev" (or "valid", "validation") or "test"; None where the table has no such column.
    """

    text: str = "text"
    label: str = "label"
    split: str | None = None

    @classmethod
    def given(cls, text: str | None, label: str | None, split: str | None) -> "Columns | None":
        """Return the columns that options name, the usual ones for those that are None; None where all are."""
        return cls(text or cls.text, label or cls.label, split) if text or label or split else None


@dataclass(frozen=True)
class Given:
    """A file or folder that is there."""

    path: Path

    fetchable: ClassVar[bool] = False

    def find(self, data: Path | None, cache: Path) -> Path | None:
        """Return the path."""
        return self.path

    def obtain(self, cache: Path) -> Path:
        """Return the path."""
        return self.path

    def describe(self) -> dict[str, str | int]:
        """Return the place in words."""
        return {"place": str(self.path)}


@dataclass(frozen=True)
class _Labelled:
    id: str
    where: str
    text: str
    label: str
    part: str


def chosen_tasks(names: str, columns: Columns | None, settings: Settings, metric: str | None = None) -> list[Task]:
    """Return the tasks of a comma-separated list, each once; "csv" stands for the table at `settings.paths.data`.

    Args:
        names: of tasks, of ours or of `settings.paths.tasks`.
        columns: of the table; None where no option names one.
        settings: paths and how text is split.
        metric: of the table's score, see `own_task`; None where no option names one.

    Raises:
        UsageError: a name is unknown, or columns or a metric are named without "csv"; and as in `own_task`.
        DataError: as in `own_task`.
    """
    wanted = list(dict.fromkeys(name.strip() for name in names.split(",")))
    if columns is not None and OWN_DATA not in wanted:
        raise UsageError(f"--text-column, --label-column and --split-column go with --task {OWN_DATA}, not {names!r}")
    if metric is not None and OWN_DATA not in wanted:
        raise UsageError(f"--metric goes with --task {OWN_DATA}, not {names!r}: other tasks have the published metric")
    return [
        own_task(
            settings.paths.data,
            columns or Columns(),
            settings.text,
            OWN_METRICS[0] if metric is None else metric,
        )
        if name == OWN_DATA
        else find_task(name, settings.paths.tasks)
        for name in wanted
    ]


def own_task(data: Path | None, columns: Columns, text: Text, metric: str = OWN_METRICS[0]) -> Task:
    """Make a task of a table; its labels are those that occur.

    The splits are those of the split column, or of the files of a folder by their names (train…, dev… or valid…,
    test…), or made 80/10/10 by a hash of each text, so that equal texts are in one split and a row keeps its split when
    the order changes. Without dev, a tenth of train is taken.

    Args:
        data: a file (`tasks.tables.rows`) or a folder of such files.
        columns: their names.
        text: how the text is split into tokens; kind "auto" looks whether commas and full stops stand alone.
        metric: one of OWN_METRICS: chosen on dev, reported on test.

    Raises:
        UsageError: nothing lies there, a column is not in the header, or there is no such metric.
        DataError: a text or a label is missing, a split is unknown or empty, or there is nothing to learn.
    """
    if metric not in OWN_METRICS:
        raise UsageError(f"no metric {metric!r} for your own data: {did_you_mean(metric, OWN_METRICS)}")
    if data is None:
        raise UsageError(f"--task {OWN_DATA} needs --data FILE: a .csv, .tsv or .jsonl file, or a folder of such")
    path = data.expanduser()
    found, how = _read(path, columns)
    labels = _labels(path, found, columns.label)
    splits = _splits(path, found, how, text)
    stem = re.sub(r"[^a-z0-9]+", "_", path.name.split(".")[0].lower()).strip("_")[:40]
    return Task(
        name=f"{OWN_DATA}-{stem or 'data'}" + ("" if metric == OWN_METRICS[0] else f"-{metric}"),
        version=1,
        title=f"{path.name}: {columns.label} of {columns.text}",
        metric=metric,
        labels=labels,
        licence="your own data",
        citation="none",
        source=str(path),
        sizes=splits.sizes,
        places=((Given(path), lambda _: splits),),
    )


def _read(path: Path, columns: Columns) -> tuple[list[_Labelled], str]:
    """Return the rows with their parts ("" where a hash decides), and how the parts came about."""
    wanted = [name for name in (columns.text, columns.label, columns.split) if name is not None]
    if path.is_file():
        files = {"": [path]}
    elif path.is_dir():
        tables = sorted(file for file in path.iterdir() if file.is_file() and is_table(file))
        if not tables:
            raise UsageError(f"folder {path} holds no .csv, .tsv or .jsonl file")
        roles = split_roles(tables)
        files = dict(zip(PARTS, (roles.train, roles.valid, roles.test), strict=True))
        if not (roles.valid or roles.test):
            files = {"": roles.train}
    else:
        raise UsageError(f"no file at {path} (working folder {Path.cwd()}){near(path)}")
    several = sum(map(len, files.values())) > 1
    bad: dict[str, list[str]] = {}
    found = []
    for part, members in files.items():
        for file in members:
            for row in rows(file, wanted):
                identity = f"{file.name.split('.')[0]}-{row.number}" if several else f"row-{row.number}"
                found.append(_labelled(row, identity, part, columns, bad))
    if bad:
        problem, where = next(iter(bad.items()))
        others = f" and {len(where) - 1} more" if len(where) > 1 else ""
        raise DataError(f"{where[0]}{others}: {problem}")
    if not found:
        raise DataError(f"{path} has no row behind its header")
    if columns.split is not None:
        return found, f"split by column {columns.split!r}"
    return found, "" if "" in files else "split by the names of the files"


def _labelled(row: Row, identity: str, part: str, columns: Columns, bad: dict[str, list[str]]) -> _Labelled:
    text, label = row.values.get(columns.text), row.values.get(columns.label)
    label = "" if label is None else str(label).strip()
    if not isinstance(text, str) or not text.strip():
        what = "is empty" if text is None or isinstance(text, str) else f"holds {text!r}, no text"
        bad.setdefault(f"column {columns.text!r} {what}; fill it in or delete the row", []).append(row.where)
    if not label:
        bad.setdefault(f"no label in column {columns.label!r}; fill it in or delete the row", []).append(row.where)
    if columns.split is not None:
        value = str(row.values.get(columns.split) or "").strip()
        part = SPLIT_NAMES.get(value.lower(), "")
        if not part:
            problem = f"column {columns.split!r} says {value!r}, none of train, dev, test"
            bad.setdefault(problem, []).append(row.where)
    return _Labelled(identity, row.where, text if isinstance(text, str) else "", label, part)


def _labels(path: Path, found: Sequence[_Labelled], column: str) -> tuple[str, ...]:
    """Return the labels that occur, numbers in their order, others by the alphabet."""
    counts = Counter(row.label for row in found)
    if len(counts) == 1:
        raise DataError(f"{path}: all {len(found)} rows have the label {found[0].label!r}: there is nothing to learn")
    if len(counts) == len(found):
        raise DataError(
            f"{path}: each of the {len(found)} rows has a label of its own in {column!r}: the wrong column?"
        )
    return tuple(sorted(counts, key=lambda label: (0, int(label), label) if label.isdecimal() else (1, 0, label)))


def _splits(path: Path, found: list[_Labelled], how: str, text: Text) -> Splits:
    if not how:
        how = "split 80/10/10 by a hash of the text"
        found = _by_hash(path, found, ("test", "dev"))
    elif not any(row.part == "dev" for row in found):
        how += "; dev is a tenth of train, chosen by a hash of the text"
        train = [row for row in found if row.part == "train"]
        found = [*_by_hash(path, train, ("dev",)), *(row for row in found if row.part != "train")]
    parts = {part: [row for row in found if row.part == part] for part in PARTS}
    for part, members in parts.items():
        if not members:
            raise DataError(f"{path} has no {part} rows: give some, or no split at all to have one made")
    _warn(parts)
    kind = text.input if text.input != "auto" else detect_input(row.text for row in found[:SAMPLE]) or "raw"
    tokenizer = Tokenizer(text.language, text.lowercase, kind)
    description = f"{path}, {len(found)} rows, {how}; {kind} text, tokens by {method(text.language, kind)}"
    return Splits(*(_examples(members, tokenizer) for members in parts.values()), description)


def _by_hash(path: Path, found: list[_Labelled], held_out: tuple[str, ...]) -> list[_Labelled]:
    """Give each row a part: a tenth of the different texts, at least one, to each of `held_out`, the rest to train."""
    texts = sorted({row.text for row in found}, key=share)
    size = max(1, round(HELD_OUT * len(texts)))
    if len(texts) <= len(held_out):
        raise DataError(f"{path}: too few different texts ({len(texts)}) to hold out {' and '.join(held_out)}")
    part_of = dict(zip(texts, [part for part in held_out for _ in range(size)], strict=False))
    return [_Labelled(r.id, r.where, r.text, r.label, part_of.get(r.text, "train")) for r in found]


def _warn(parts: dict[str, list[_Labelled]]) -> None:
    """Log what makes a score less than it seems."""
    learned = {row.label for row in parts["train"]}
    unseen = {row.label: row.where for part in ("dev", "test") for row in parts[part] if row.label not in learned}
    if unseen:
        label, where = next(iter(unseen.items()))
        message = "%d labels are in no training row and cannot be predicted, e.g. %r (%s)"
        logger.warning(message, len(unseen), label, where)
    texts = {row.text for row in parts["train"]}
    repeated = [row.where for row in parts["test"] if row.text in texts]
    if repeated:
        logger.warning("%d test texts stand in train too, e.g. %s: the score is too high", len(repeated), repeated[0])


def _examples(found: Sequence[_Labelled], tokenizer: Tokenizer) -> list[Example]:
    examples = []
    for row in found:
        tokens = tuple(token for sentence in tokenizer.sentences(row.text.replace("\n", " ")) for token in sentence)
        if not tokens:
            raise DataError(f"{row.where}: no token in the text {row.text!r}; fill it in or delete the row")
        examples.append(Example(row.id, tokens, row.label))
    return examples
