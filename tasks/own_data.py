"""A user's labelled data as a task without code: a table with a text and a label per row, or tagged tokens."""

import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from tasks.own_labels import SURROGATE, label_text, merged_spellings
from tasks.own_tags import SPAN_TAG, column_number, is_tag_file, tagged_sentences
from tasks.registry import OWN_DATA, find_task
from tasks.tables import Row, is_table, rows
from tasks.task import Example, Splits, Task, share
from toolkit.config import Settings, Text
from toolkit.errors import DataError, UsageError, did_you_mean
from toolkit.text.corpus import check_name, near
from toolkit.text.segmentation import unsegmented
from toolkit.text.tokenize import Tokenizer, detect_input, method

logger = logging.getLogger(__name__)

PARTS = ("train", "dev", "test")
SPLIT_NAMES = dict.fromkeys(("train", "training"), "train") | dict.fromkeys(("test", "tests", "testing"), "test")
SPLIT_NAMES |= dict.fromkeys(("dev", "development", "valid", "validation", "val"), "dev")
OWN_METRICS = ("accuracy", "macro_f1", "matthews")
WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")  # of a file's name, CamelCase too
HELD_OUT = 0.1  # of the different texts, for dev and for test, where no split is given
SAMPLE = 2_000  # texts that tell raw from tokenised
REPLACEMENT = "\ufffd"


@dataclass(frozen=True)
class Columns:
    """The columns that are read.

    Attributes:
        text: raw or tokenised text; with `tag` the number of the column of tokens, by default 1.
        label: any value; equal ones are one class.
        split: "train", "dev" (or "valid", "validation") or "test"; None if the table has no such column.
        second: the second text of a pair; None if examples are single texts.
        tag: the number of the column of tags, or "last", in files of a token per line; None for tables.
        quotes: as in `tasks.tables.rows`.
    """

    text: str = "text"
    label: str = "label"
    split: str | None = None
    second: str | None = None
    tag: str | None = None
    quotes: bool | None = None

    @classmethod
    def given(
        cls,
        text: str | None = None,
        label: str | None = None,
        split: str | None = None,
        second: str | None = None,
        tag: str | None = None,
        quotes: bool | None = None,
    ) -> "Columns | None":
        """Return the columns that options name, the usual ones for those that are None; None if all are.

        Raises:
            UsageError: tags are named together with what only tables have.
        """
        if all(option is None for option in (text, label, split, second, tag, quotes)):
            return None
        if tag is not None and any(option is not None for option in (label, split, second, quotes)):
            raise UsageError(
                "--tag-column reads a token per line: no other option of columns or quotes fits but --text-column"
            )
        return cls(text or ("1" if tag else cls.text), label or cls.label, split, second, tag, quotes)


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
    texts: tuple[str, ...]
    label: str
    part: str


@dataclass(frozen=True)
class _Item:
    """An example, where it was read, and its part ("" if a hash decides).

    `key` is the same for examples that have the same tokens, case aside.
    """

    example: Example
    where: str
    part: str

    @property
    def key(self) -> str:
        return "\n".join(" ".join(tokens).lower() for tokens in self.example.sentences)


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
        raise UsageError(f"options of columns and quotes go with --task {OWN_DATA}, not {names!r}")
    if metric is not None and OWN_DATA not in wanted:
        raise UsageError(f"--metric goes with --task {OWN_DATA}, not {names!r}: other tasks have the published metric")
    return [
        own_task(
            settings.paths.data,
            columns or Columns(),
            settings.text,
            metric,
        )
        if name == OWN_DATA
        else find_task(name, settings.paths.tasks)
        for name in wanted
    ]


def own_task(data: Path | None, columns: Columns, text: Text, metric: str | None = None) -> Task:
    """Make a task of a table or of tagged tokens; its labels are those that occur.

    The splits are those of the split column, or of the files of a folder by their names (train, dev or valid, test
    anywhere in a name), or made 80/10/10 by a hash of the tokens in lower case, so that texts that differ in case and
    blanks alone are in one split and a row keeps its split if the order changes. Without dev, a tenth of train becomes
    dev.

    Args:
        data: a file (`tasks.tables.rows`, `tasks.own_tags.tagged_sentences`) or a folder of such files.
        columns: their names.
        text: how the text is split into tokens; kind "auto" looks whether commas and full stops are separate.
        metric: one of OWN_METRICS: chosen on dev, reported on test; None takes accuracy, or span F1 for spans of tags.

    Raises:
        UsageError: there is no such file, a name fits two splits, a column is not in the header, or there is no such
            metric for these labels.
        DataError: a text or a label is missing, a split is unknown or empty, or there is nothing to learn.
    """
    if metric is not None and columns.tag is not None:
        raise UsageError(f"--metric {metric} is for labels; tags are scored by span F1 or accuracy")
    if metric is not None and metric not in OWN_METRICS:
        raise UsageError(f"no metric {metric!r} for your own data: {did_you_mean(metric, OWN_METRICS)}")
    if data is None:
        raise UsageError(f"--task {OWN_DATA} needs --data FILE: a .csv, .tsv or .jsonl file, or a folder of such")
    path = data.expanduser()
    files, how = _files(path, columns)
    if columns.tag is not None:
        found, tokens = list(_tagged(files, columns)), "tokens as they are"
    else:
        labelled = list(_read(files, columns))
        found, tokens = _tokenised(labelled, text)
        how = f"split by column {columns.split!r}" if columns.split is not None else how
    if not found:
        raise DataError(f"{path} has no row after its header" if columns.tag is None else f"{path} has no sentence")
    labels = _labels(path, found, columns)
    _report_contradictions(found)
    splits = _splits(path, found, how, tokens)
    spans = columns.tag is not None and all(map(SPAN_TAG.fullmatch, labels))
    kind = "tagging" if columns.tag is not None else "pair" if columns.second is not None else "sentence"
    stem = re.sub(r"[^a-z0-9]+", "_", path.name.split(".")[0].lower()).strip("_")[:40]
    what = f"tags of column {columns.tag}" if kind == "tagging" else f"{columns.label} of {columns.text}"
    return Task(
        name=f"{OWN_DATA}-{stem or 'data'}" + ("" if metric in (None, OWN_METRICS[0]) else f"-{metric}"),
        version=2,
        title=f"{path.name}: {what}{f' and {columns.second}' if columns.second else ''}",
        metric=metric or ("span_f1" if spans else OWN_METRICS[0]),
        labels=labels,
        licence="your own data",
        citation="none",
        source=str(path),
        sizes=splits.sizes,
        places=((Given(path), lambda _: splits),),
        kind=kind,
    )


def _files(path: Path, columns: Columns) -> tuple[list[tuple[Path, str, str]], str]:
    """Return files, the prefix of their ids and their parts ("" if a hash decides), and how the parts came about."""
    readable = is_table if columns.tag is None else is_tag_file
    check_name(path)
    if path.is_file():
        return [(path, "row", "")], ""
    if not path.is_dir():
        raise UsageError(f"no file at {path} (working folder {Path.cwd()}){near(path)}")
    found = sorted(file for file in path.iterdir() if file.is_file() and readable(file))
    if not found:
        kinds = ".csv, .tsv or .jsonl file" if columns.tag is None else "file of tags (.conll, .conllu, .txt, …)"
        raise UsageError(f"folder {path} holds no {kinds}")
    for file in found:
        check_name(file)
    parts = {file: _part_of(file) for file in found}
    if not {"dev", "test"} & set(parts.values()):
        parts = dict.fromkeys(parts, "")
    else:
        parts = {file: part or "train" for file, part in parts.items()}
    for file, part in parts.items():
        named = "no train, dev or test in its name" if not _part_of(file) else "by its name"
        logger.info("%s: %s (%s)", file, part or "split by a hash of the tokens", named)
    stems = {file: re.sub(r"(?i)(\.(gz|bz2|xz))?$", "", file.name).rsplit(".", 1)[0] for file in found}
    unique = len(set(stems.values())) == len(stems)
    prefixes = {file: "row" if len(found) == 1 else stems[file] if unique else file.name for file in found}
    how = "split by the names of the files" if any(parts.values()) else ""
    return [(file, prefixes[file], part) for file, part in parts.items()], how


def _part_of(file: Path) -> str:
    """Return the part that a file's name holds anywhere, "" if none."""
    parts = {SPLIT_NAMES[word.lower()] for word in WORDS.findall(file.name) if word.lower() in SPLIT_NAMES}
    if len(parts) > 1:
        raise UsageError(f"{file.name} names several parts ({', '.join(sorted(parts))}): rename the file")
    return parts.pop() if parts else ""


def _tagged(files: Sequence[tuple[Path, str, str]], columns: Columns) -> Iterator[_Item]:
    token, tag = column_number("--text-column", columns.text), column_number("--tag-column", columns.tag or "")
    for file, prefix, part in files:
        number = 0
        for number, (line, tokens, tags) in enumerate(tagged_sentences(file, token, tag), 1):
            yield _Item(Example(f"{prefix}-{number}", tokens, tags=tags), f"{file}, line {line}", part)
        logger.info("%s: %d sentences read", file, number)


def _read(files: Sequence[tuple[Path, str, str]], columns: Columns) -> Iterator[_Labelled]:
    """Yield the rows of tables; DataError at the end, with the first of the faults, if there are any."""
    wanted = list(dict.fromkeys(filter(None, (columns.text, columns.second, columns.label, columns.split))))
    bad: dict[str, list[str]] = {}
    cut: list[str] = []
    for file, prefix, part in files:
        for row in rows(file, wanted, columns.quotes):
            yield _labelled(row, f"{prefix}-{row.number}", part, columns, bad, cut)
    if bad:
        problem, where = next(iter(bad.items()))
        others = f" and {len(where) - 1} more" if len(where) > 1 else ""
        raise DataError(f"{where[0]}{others}: {problem}")
    if cut:
        message = "%d rows hold half a surrogate pair, as of a cut emoji, e.g. %s: read as %s"
        logger.warning(message, len(cut), cut[0], REPLACEMENT)


def _labelled(
    row: Row, identity: str, part: str, columns: Columns, bad: dict[str, list[str]], cut: list[str]
) -> _Labelled:
    texts = []
    for column in filter(None, (columns.text, columns.second)):
        text = row.values.get(column)
        if not isinstance(text, str) or not text.strip():
            what = "is empty" if text is None or isinstance(text, str) else f"holds {text!r:.40}, no text"
            bad.setdefault(f"column {column!r} {what}; fill it in or delete the row", []).append(row.where)
            text = ""
        if SURROGATE.search(text):
            cut.append(row.where)
            text = SURROGATE.sub(REPLACEMENT, text)
        texts.append(text)
    label, wrong = label_text(row.values.get(columns.label))
    if wrong:
        bad.setdefault(f"{wrong} in column {columns.label!r}; fill it in or delete the row", []).append(row.where)
    if columns.split is not None:
        value = str(row.values.get(columns.split) or "").strip()
        part = SPLIT_NAMES.get(value.lower(), "")
        if not part:
            problem = f"column {columns.split!r} says {value!r}, none of train, dev, test"
            bad.setdefault(problem, []).append(row.where)
    return _Labelled(identity, row.where, tuple(texts), label, part)


def _tokenised(found: Sequence[_Labelled], text: Text) -> tuple[list[_Item], str]:
    """Return the rows as examples, and how their text was split."""
    sample = [one for row in found[:SAMPLE] for one in row.texts]
    kind = text.input if text.input != "auto" else detect_input(sample) or "raw"
    if kind == "raw" and (warning := unsegmented(sample, text.language)):
        logger.warning("%s", warning)
    tokenizer = Tokenizer(text.language, text.lowercase, kind)
    labels = merged_spellings([row.label for row in found])
    items = []
    for row, label in zip(found, labels, strict=True):
        first, *second = (_tokens(tokenizer, one, row.where) for one in row.texts)
        items.append(_Item(Example(row.id, first, label, *second), row.where, row.part))
    return items, f"{kind} text, tokens by {method(text.language, kind)}"


def _tokens(tokenizer: Tokenizer, text: str, where: str) -> tuple[str, ...]:
    tokens = tuple(token for sentence in tokenizer.sentences(text.replace("\n", " ")) for token in sentence)
    if not tokens:
        raise DataError(f"{where}: no token in the text {text!r}; fill it in or delete the row")
    return tokens


def _labels(path: Path, found: Sequence[_Item], columns: Columns) -> tuple[str, ...]:
    """Return the labels that occur, numbers in their order, others by the alphabet."""
    counts = Counter(label for item in found for label in item.example.tags or (item.example.label,))
    n, rows_or_tokens = counts.total(), "rows" if columns.tag is None else "tokens"
    if len(counts) == 1:
        raise DataError(
            f"{path}: all {n} {rows_or_tokens} have the label {next(iter(counts))!r}: there is nothing to learn"
        )
    if len(counts) == n:
        column = columns.tag or columns.label
        raise DataError(f"{path}: each of the {n} {rows_or_tokens} has a label of its own in {column!r}: wrong column?")
    return tuple(sorted(counts, key=lambda label: (0, int(label), label) if _is_number(label) else (1, 0, label)))


def _is_number(label: str) -> bool:
    return label.isdecimal() and len(label) < 1000


def _splits(path: Path, found: list[_Item], how: str, tokens: str) -> Splits:
    if not how:
        how = "split 80/10/10 by a hash of the tokens"
        found = _by_hash(path, found, ("test", "dev"))
    elif not any(item.part == "dev" for item in found):
        how += "; dev is a tenth of train, chosen by a hash of the tokens"
        train = [item for item in found if item.part == "train"]
        found = [*_by_hash(path, train, ("dev",)), *(item for item in found if item.part != "train")]
    parts = {part: [item for item in found if item.part == part] for part in PARTS}
    for part, members in parts.items():
        if not members:
            raise DataError(f"{path} has no {part} rows: give some, or no split at all to have one made")
    _warn(parts)
    description = f"{path}, {len(found)} examples, {how}; {tokens}"
    return Splits(*([item.example for item in members] for members in parts.values()), description)


def _by_hash(path: Path, found: list[_Item], held_out: tuple[str, ...]) -> list[_Item]:
    """Give each row a part: a tenth of the different texts, at least one, to each of `held_out`, the rest to train."""
    keys = sorted({item.key for item in found}, key=share)
    size = max(1, round(HELD_OUT * len(keys)))
    if len(keys) <= len(held_out):
        raise DataError(f"{path}: too few different texts ({len(keys)}) to hold out {' and '.join(held_out)}")
    part_of = dict(zip(keys, [part for part in held_out for _ in range(size)], strict=False))
    return [replace(item, part=part_of.get(item.key, "train")) for item in found]


def _report_contradictions(found: Sequence[_Item]) -> None:
    """Log how many texts have several labels: no classifier can get all of them right."""
    labels: dict[str, set[str]] = {}
    first: dict[str, str] = {}
    for item in found:
        labels.setdefault(item.key, set()).add(item.example.gold)
        first.setdefault(item.key, item.where)
    several = [key for key, golds in labels.items() if len(golds) > 1]
    if several:
        message = "%d texts have several labels (case and blanks aside), e.g. %s: no score can reach 100%%"
        logger.warning(message, len(several), first[several[0]])


def _warn(parts: dict[str, list[_Item]]) -> None:
    """Log what makes a score less, or more, than it seems."""
    learned = {label for item in parts["train"] for label in item.example.tags or (item.example.label,)}
    unseen: dict[str, str] = {}
    for item in (*parts["dev"], *parts["test"]):
        for label in item.example.tags or (item.example.label,):
            if label not in learned:
                unseen[label] = item.where
    if unseen:
        label, where = next(iter(unseen.items()))
        message = "%d labels are in no training row and cannot be predicted, e.g. %r (%s)"
        logger.warning(message, len(unseen), label, where)
    keys = {item.key for item in parts["train"]}
    for part in ("dev", "test"):
        repeated = [item.where for item in parts[part] if item.key in keys]
        if repeated:
            message = "%d of %d %s rows have the tokens of a training row (case and blanks aside), e.g. %s: %s"
            advice = "remove them, or the score is too high"
            logger.warning(message, len(repeated), len(parts[part]), part, repeated[0], advice)
