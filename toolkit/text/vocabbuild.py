"""Building the vocabulary that pretraining would build, and saying how much of the text it covers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.config import Settings, cache_folder
from toolkit.errors import UsageError
from toolkit.text.coverage import candidates, coverage, useful_sizes
from toolkit.text.prepare import Prepared, TokenStream, prepare
from toolkit.text.vocab import RESERVED, SPECIALS, Vocabulary

PART = 4_000_000  # tokens counted at a time


def build(
    corpus: Sequence[str | Path], valid: Sequence[str | Path] | None, settings: Settings, out: Path
) -> dict[str, Any]:
    """Write the vocabulary of a corpus: the special tokens, then the words by falling frequency.

    The text goes through `prepare` with the settings of pretraining, so the file equals the vocabulary that
    `pretrain` makes of the same text, and the tokenised text is in the cache for it.

    Args:
        corpus, valid: the text, as in `prepare`.
        settings: `text`, `vocabulary` and `pretrain.valid_fraction` count.
        out: the file to be, written whole or not at all.

    Returns:
        the JSON document: vocabulary (the file), words, size, min_count, corpus (fingerprint), input, tokens,
        distinct_words, coverage (share of the tokens in the vocabulary: train, valid), sizes (list of size, train,
        valid: the coverage of other sizes), left_out (words of the text by reason: rare, size, reserved).

    Raises:
        UsageError: `out` exists, or no word occurs `min_count` times.
        UsageError, DataError: see `prepare`.
    """
    if out.exists():
        raise UsageError(f"{out} exists already: remove it or give another --out")
    prepared = prepare(corpus, valid, settings.text, settings.pretrain.valid_fraction, cache_folder(settings))
    size, min_count = settings.vocabulary.size, settings.vocabulary.min_count
    vocabulary = Vocabulary.from_counts(prepared.words, prepared.counts, size, min_count)
    vocabulary.save(out)
    chosen = candidates(prepared.words)
    chosen = chosen[prepared.counts[chosen] >= min_count]  # the words are in frequency order already
    sizes = useful_sizes(len(chosen), len(vocabulary))
    shares = {
        split: coverage(counts[chosen], int(counts.sum()), sizes) for split, counts in counts_of(prepared).items()
    }
    rows = [
        {"size": size, "train": train, "valid": valid}
        for size, train, valid in zip(sizes, *shares.values(), strict=True)
    ]
    # words of the held-out text alone stand last, with count 0
    in_text = int(np.count_nonzero(prepared.counts))
    reserved = [word for word in prepared.words[:in_text] if word in RESERVED]
    return {
        "vocabulary": str(out),
        "words": len(vocabulary),
        "size": size,
        "min_count": min_count,
        "corpus": prepared.fingerprint,
        "input": prepared.description["input"],
        "tokens": {"train": prepared.train.n_tokens, "valid": prepared.valid.n_tokens},
        "distinct_words": in_text,
        "coverage": next(
            {"train": row["train"], "valid": row["valid"]} for row in rows if row["size"] == len(vocabulary)
        ),
        "sizes": rows,
        "left_out": {
            "rare": in_text - len(reserved) - len(chosen),
            "size": len(chosen) + len(SPECIALS) - len(vocabulary),
            "reserved": reserved,
        },
    }


def counts_of(prepared: Prepared) -> dict[str, np.ndarray]:
    """Return how often each word of a prepared corpus stands in train and in valid: int64 `[n_words]` each."""
    return {"train": prepared.counts, "valid": _counted(prepared.valid, len(prepared.words))}


def _counted(stream: TokenStream, n_words: int) -> np.ndarray:
    counts = np.zeros(n_words, np.int64)
    for begin in range(0, stream.n_tokens, PART):
        counts += np.bincount(stream.tokens[begin : begin + PART], minlength=n_words)
    return counts
