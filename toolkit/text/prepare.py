"""A corpus tokenised once, into a cache that training streams from."""

import itertools
import logging
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from toolkit import config
from toolkit.errors import DataError, FormatError, UsageError
from toolkit.files import atomic_folder, fingerprint, sha256
from toolkit.progress import Progress
from toolkit.text import corpus, workers
from toolkit.text.prepared import FORMAT, Merger, Prepared, TokenStream, open_prepared
from toolkit.text.segmentation import unsegmented
from toolkit.text.tokenize import InputKind, agreed, detect_input, method
from toolkit.text.workers import LINE_LIMIT, SPLITS, Recipe, Source

__all__ = ["Prepared", "TokenStream", "prepare"]

logger = logging.getLogger(__name__)

SPLIT_NAMES = {"train": "training", "valid": "validation"}
SAMPLE = 2_000  # lines of a file that tell raw from tokenised


def prepare(
    patterns: Sequence[str | Path],
    valid_patterns: Sequence[str | Path] | None,
    settings: config.Text,
    valid_fraction: float,
    cache: Path,
) -> Prepared:
    """Tokenise a corpus, or open it where the cache holds it already.

    The result depends on the files' contents and the settings only, not on the number of processes. Memory holds the
    distinct words, a few chunks and one piece of a line. A raw line is a paragraph; one longer than 64 KiB (a
    tokenised one: 1 MiB) is cut at a blank.

    Args:
        patterns: files, folders and globs as in `corpus.resolve`. Files named valid… or dev… are the validation text,
            files named test… are left out.
        valid_patterns: the validation text instead; empty or None to go by the names.
        settings: the `[text]` table; with `input = "auto"` each file is judged by its own sample.
        valid_fraction: where there is no validation file, the share of the paragraphs (tokenised: sentences) held
            out, chosen by a hash of their text. In a corpus too small for that share it is doubled until one is.
        cache: the root of the caches, from `config.cache_folder`.

    Raises:
        UsageError: a pattern matches nothing, or the names leave nothing to train on.
        DataError: a file is not UTF-8 or damaged, or there are no tokens to train on or to hold out.
        ToolkitError: a worker process died.
    """
    sources = _sources(patterns, valid_patterns, settings)
    held_out = 0.0 if any(source.split == "valid" for source in sources) else valid_fraction
    key = {
        "format": FORMAT,
        "files": [(source.split, source.kind, source.sha256) for source in sources],
        "methods": {kind: method(settings.language, kind) for kind in sorted({source.kind for source in sources})},
        "settings": _settings_in_key(settings),
        "valid_fraction": held_out,
    }
    folder = cache / "corpora" / fingerprint(key)
    if folder.is_dir():
        try:
            return open_prepared(folder)
        except FormatError as error:
            logger.warning("the prepared corpus is made again: %s", error)

    def recipe(held_out: float) -> Recipe:
        return Recipe(settings.language, settings.lowercase, held_out, settings.lowercase_paragraphs)

    while True:
        try:
            _build(folder, sources, recipe(held_out), settings.processes, key)
            return open_prepared(folder)
        except _NothingHeldOut:
            if held_out >= 0.5:
                raise DataError(
                    f"{_names(sources)}: too few paragraphs to hold some out for validation; name a validation file"
                ) from None
            held_out = min(0.5, 2 * held_out)
            logger.info("no paragraph was held out for validation; trying a share of %g", held_out)


def _settings_in_key(settings: config.Text) -> dict[str, Any]:
    """What the cache's key holds of the settings; a share of nought is left out, as before there was that setting."""
    unused = set() if settings.lowercase_paragraphs else {"lowercase_paragraphs"}
    return settings.model_dump(mode="json", exclude={"processes", "input"} | unused)


class _NothingHeldOut(Exception):
    """The hash put no paragraph aside, or all of them."""


def _sources(patterns: Sequence, valid_patterns: Sequence | None, settings: config.Text) -> list[Source]:
    roles = corpus.split_roles(corpus.resolve(patterns))
    valid = corpus.resolve(valid_patterns) if valid_patterns else roles.valid
    named = {file.resolve() for file in valid}
    train = [file for file in roles.train if file.resolve() not in named]
    if roles.test:
        logger.info("left out of training as test text: %s", ", ".join(map(str, roles.test)))
    if not train:
        others = ", ".join(str(file) for file in [*valid, *roles.test][:5])
        raise UsageError(f"nothing to train on: by name or option all files are validation or test text ({others})")
    files = [(file, "train") for file in train] + [(file, "valid") for file in valid]
    kinds = _kinds([file for file, _ in files], settings)
    return [Source(file, split, kind, sha256(file)) for (file, split), kind in zip(files, kinds, strict=True)]


def _kinds(files: Sequence[Path], settings: config.Text) -> list[InputKind]:
    if settings.input == "tokenised":
        return ["tokenised"] * len(files)
    found = []
    for file in files:
        lines = (line for line in corpus.lines(file, LINE_LIMIT["raw"]) if line.strip())
        sample = list(itertools.islice(lines, SAMPLE))
        found.append(detect_input(sample) if settings.input == "auto" else "raw")
        if found[-1] != "tokenised" and (warning := unsegmented(sample, settings.language)):
            logger.warning("%s: %s", file, warning)
    kinds = agreed(found)
    if settings.input == "auto":
        for kind in sorted(set(kinds)):
            logger.info("%d of %d files are %s text (text.input = auto)", kinds.count(kind), len(kinds), kind)
    return kinds


def _build(folder: Path, sources: list[Source], recipe: Recipe, processes: int, key: dict[str, Any]) -> None:
    """Tokenise into `folder`, whole or not at all."""
    total = sum(source.path.stat().st_size for source in sources)
    for kind, splitter in key["methods"].items():
        logger.info("%s text is split by %s", kind, splitter)
    with atomic_folder(folder) as temporary:
        tokenised = workers.tokenised(workers.chunks(sources), sources, recipe, workers.processes_for(total, processes))
        with (
            closing(tokenised),
            Progress("tokenising", total / 1e6, "MB") as progress,
            Merger(temporary, len(sources)) as merger,
        ):
            start = time.monotonic()
            for chunk, counted in tokenised:
                merger.add(chunk.source, counted)
                speed = merger.n_tokens / max(time.monotonic() - start, 1e-9)
                progress.advance(chunk.read / 1e6, f"{speed:,.0f} tokens/s")
        _check_not_empty(sources, merger)
        merger.finish(sources, key, recipe.held_out)


def _check_not_empty(sources: list[Source], merger: Merger) -> None:
    empty = [source for source, tokens in zip(sources, merger.tokens_of_source, strict=True) if not tokens]
    for split in SPLITS:
        files = [source for source in sources if source.split == split]
        if files and all(source in empty for source in files):
            raise DataError(f"{_names(files)}: no tokens, the {SPLIT_NAMES[split]} text is empty")
    for source in empty:
        logger.warning("%s holds no tokens", source.path)
    if not all(merger.size.values()):
        raise _NothingHeldOut


def _names(sources: Sequence[Source]) -> str:
    names = [str(source.path) for source in sources]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
