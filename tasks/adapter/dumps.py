"""Dumps as a source of layers: the vectors of any encoder, one file a split, in place of a biLM."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from tasks.adapter.features import LayerSource
from tasks.export import split_sentences
from tasks.task import Splits, Task
from toolkit.config import Embed
from toolkit.embed.dumpfile import FORMAT, Dump, open_embeddings
from toolkit.embed.dumpmark import fingerprint_of
from toolkit.errors import DataError, FormatError, UsageError
from toolkit.files import fingerprint, sha256
from toolkit.text.mark import text_fingerprint

SUFFIXES = (".hdf5", ".h5")
SPLIT, TASK = "{split}", "{task}"
SHOWN = 60  # characters of a sentence in a message


def source_of_dumps(text: str, task: Task, parts: Sequence[str] = ("train", "dev", "test")) -> LayerSource:
    """Return the dumps of a task's splits as a source of layers.

    Args:
        text: a folder that holds one dump a split, such as train.hdf5 or train.h5, or a path with `{split}` in it.
            `{task}` stands for the task's name.
        task: what the dumps are of.
        parts: the names of its splits.

    Raises:
        UsageError: a dump is missing, or there are two of one split.
        FormatError: a dump is damaged, or the dumps are not of one encoder.
    """
    paths = _files(text, task.name, parts)
    contents = [sha256(path) for path in paths.values()]
    with _opened(paths) as dumps:
        first, *others = dumps.values()
        for other in others:
            _check_alike(first, other)
        doubled = layer_0_is_doubled(first)
        return LayerSource(
            name=text,
            fingerprint=fingerprint_of(*dumps.values()),
            state=fingerprint([contents, {name: str(value) for name, value in first.attributes.items()}]),
            n_layers=first.n_layers or 1,
            width=first.width,
            encode=lambda sentences: _layers(paths, sentences),
            directions=2 if doubled else 1,
            names=("x_k" if doubled else "layer 0", "mix"),
            label=re.sub(r"[^A-Za-z0-9.]+", "-", text.replace(SPLIT, "").replace(TASK, "")).strip("-.")[-30:],
            embed=_made_with(first),
            check=lambda splits: _check_splits(paths, splits, task),
        )


def layer_0_is_doubled(dump: Dump) -> bool:
    """Return whether layer 0 holds one vector twice, side by side, as that of a biLM does; the first tokens tell."""
    if (dump.n_layers or 1) == 1 or dump.width % 2:
        return False
    numbers = (number for number in range(len(dump)) if dump.n_tokens(number))
    left, right = np.split(dump.layer(next(numbers, 0), 0), 2, -1)
    return bool(left.size and (left == right).all())


@contextmanager
def _opened(paths: Mapping[str, Path]) -> Iterator[dict[str, Dump]]:
    with ExitStack() as stack:
        yield {part: stack.enter_context(open_embeddings(path)) for part, path in paths.items()}


def _files(text: str, task: str, parts: Sequence[str]) -> dict[str, Path]:
    pattern = text.replace(TASK, task)
    if SPLIT in pattern:
        found = {part: Path(pattern.replace(SPLIT, part)) for part in parts}
        missing = [str(path) for path in found.values() if not path.is_file()]
        if missing:
            raise UsageError(f"no dump at {missing[0]}: {text} should name one of each of {', '.join(parts)}")
        return found
    folder = Path(pattern)
    if not folder.is_dir():
        raise UsageError(f"no folder at {folder}: give one with a dump a split, or a path with {SPLIT} in it")
    return {part: _in_folder(folder, part) for part in parts}


def _in_folder(folder: Path, part: str) -> Path:
    found = [folder / f"{part}{suffix}" for suffix in SUFFIXES if (folder / f"{part}{suffix}").is_file()]
    if len(found) > 1:
        raise UsageError(f"{folder} holds {found[0].name} and {found[1].name}: remove one of them")
    if not found:
        names = sorted(entry.name for entry in folder.iterdir())[:5]
        raise UsageError(f"{folder} lacks {part}.hdf5 (or {part}.h5): it holds {', '.join(names) or 'nothing'}")
    return found[0]


def _check_alike(first: Dump, other: Dump) -> None:
    if (first.n_layers, first.width) != (other.n_layers, other.width):
        shapes = [f"[{dump.n_layers or 1}, tokens, {dump.width}]" for dump in (first, other)]
        raise FormatError(f"{other.path} holds {shapes[1]} a sentence, {first.path} {shapes[0]}: dump both alike")
    for name in ("model_fingerprint", "layers", "state", "state_mark"):
        here, there = (dump.attributes.get(name) for dump in (other, first))
        if here != there:
            raise FormatError(f"{other.path} says {name} {here!r}, {first.path} {there!r}: dump both alike")


def _made_with(dump: Dump) -> dict[str, object]:
    """Return those settings of [embed] that a dump of the toolkit was made with."""
    if dump.attributes.get("format") != FORMAT:
        return {}
    found = {name: dump.attributes[name] for name in Embed.model_fields if name in dump.attributes}
    return {name: getattr(Embed.model_validate(found), name) for name in found}


def _check_splits(paths: Mapping[str, Path], splits: Splits, task: Task) -> None:
    advice = f"dump what `toolkit tasks export {task.name}` writes"
    with _opened(paths) as dumps:
        for name, sentences in split_sentences(splits).items():
            dump = dumps[name]
            if len(dump) != len(sentences):
                counts = f"{len(dump):,} sentences, the {name} split of {task.name} {len(sentences):,}"
                raise DataError(f"{dump.path} holds {counts}: {advice}")
            if "text_fingerprint" in dump.attributes:
                dump.require(text_fingerprint=text_fingerprint(sentences))


def _layers(paths: Mapping[str, Path], sentences: Iterable[Sequence[str]]) -> Iterator[np.ndarray]:
    """Yield the layers of the sentences of all splits, one behind the other."""
    with _opened(paths) as dumps:
        places = ((dump, number) for dump in dumps.values() for number in range(len(dump)))
        for (dump, number), tokens in zip(places, sentences, strict=True):
            layers = dump.layers(number)
            if layers.shape[1] != len(tokens):
                text = " ".join(tokens)
                shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
                raise DataError(
                    f"{dump.path}, sentence {number}: {layers.shape[1]} vectors for the {len(tokens)} tokens of "
                    f"{shown!r}: an encoder with other tokens should give one vector for each of these, such as the "
                    f"mean of its parts"
                )
            yield layers
