"""SST-5 with every phrase of the training trees as an example of its own; dev and test are the sentences of `sst5`."""

import re
from collections.abc import Iterator
from pathlib import Path

from tasks import sst5
from tasks.data import Folder
from tasks.reading import tokens_of
from tasks.task import Example, Splits, Task
from toolkit.errors import DataError
from toolkit.text.corpus import lines

PIECE = re.compile(r"\((\d) |\)|([^()]+)")


def read(folder: Path) -> Splits:
    """Read the trees of 8544, 1101 and 2210 sentences: all phrases of train, the whole sentences of dev and test.

    Words are lower-cased, which makes the sentences those of `sst5`. A phrase that stands in several trees is one
    example; a phrase that is a whole sentence of dev or test is left out.
    """
    dev, test = (_whole(folder / f"{part}.txt", part) for part in ("dev", "test"))
    held_out = {example.tokens for example in (*dev, *test)}
    train: dict[tuple[tuple[str, ...], str], Example] = {}
    left_out = 0
    for number, tree in _trees(folder / "train.txt"):
        for place, (label, tokens) in enumerate(tree):
            if tokens in held_out:
                left_out += 1
            elif (tokens, label) not in train:
                train[tokens, label] = Example(f"train-{number}-{place}", tokens, label)
    description = (
        f"the published trees in {folder}: train is their {len(train)} different phrases, without {left_out} that are "
        "whole sentences of dev or test"
    )
    return Splits(list(train.values()), dev, test, description)


def phrases(tree: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return label digit and lower-cased tokens of every node of "(3 (2 Very) (4 good))", the whole tree first.

    Raises:
        ValueError: brackets do not match, or a node has no label or no word.
    """
    found: list[tuple[str, tuple[str, ...]]] = []
    tokens: list[str] = []
    opened: list[tuple[int, str, int]] = []  # place among the found, label, first token
    for piece in PIECE.finditer(tree.strip()):
        label, words = piece.groups()
        if label is not None:
            opened.append((len(found), label, len(tokens)))
            found.append((label, ()))
        elif words is None:
            place, label, start = opened.pop() if opened else (0, "", len(tokens))
            if start == len(tokens):
                raise ValueError("a bracket closes nothing")
            found[place] = (label, tuple(tokens[start:]))
        elif words.strip():
            tokens.extend(tokens_of(words.lower()))
    if opened or not found or found[0][1] != tuple(tokens):
        raise ValueError("the brackets do not match")
    return found


def _trees(path: Path) -> Iterator[tuple[int, list[tuple[str, tuple[str, ...]]]]]:
    for number, line in enumerate(lines(path), 1):
        try:
            yield number, [(sst5.LABELS[label], tokens) for label, tokens in phrases(line)]
        except (KeyError, ValueError) as error:
            raise DataError(f"{path}, line {number}: no tree with labels 0 to 4 ({error}): fetch it again") from None


def _whole(path: Path, prefix: str) -> list[Example]:
    return [Example(f"{prefix}-{number}", tree[0][1], tree[0][0]) for number, tree in _trees(path)]


TASK = Task(
    name="sst5_subtrees",
    version=1,
    title="Stanford Sentiment Treebank, five classes, trained on phrases too",
    metric="accuracy",
    labels=sst5.TASK.labels,
    licence=sst5.TASK.licence,
    citation=sst5.TASK.citation,
    source=sst5.TASK.source,
    sizes={"train": 157397, "dev": 1101, "test": 2210},
    published=sst5.TASK.published,
    places=((Folder("sst_trees", ("train.txt", "dev.txt", "test.txt")), read),),
)
