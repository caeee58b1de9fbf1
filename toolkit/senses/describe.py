"""Neighbours and purity as JSON and as text: layers side by side, each neighbour in its sentence."""

import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any

from toolkit.errors import UsageError
from toolkit.senses.neighbours import Neighbour, Occurrences, Purity, Query, neighbours, purity_at_k

SENSES_SHOWN = 3
MIN_COLUMN = 34
GAP = "  "


def choose_queries(occurrences: Occurrences, word: str, number: int | None) -> list[Query]:
    """Return one occurrence by its number among the word's, or, without a number, what shows the word best.

    That is the first occurrence of each of its most frequent senses, or its first occurrence where none is labelled.

    Raises:
        UsageError: the file has no such word, or the word no such occurrence.
    """
    indices = occurrences.of(word)
    if number is not None:
        if not 0 <= number < len(indices):
            raise UsageError(f"{word!r} has no occurrence {number}: they are numbered 0 to {len(indices) - 1}")
        return [occurrences.query(int(indices[number]))]
    senses = [occurrences.senses[i] for i in indices]
    frequent = [sense for sense, _ in Counter(filter(None, senses)).most_common(SENSES_SHOWN)]
    return [occurrences.query(int(indices[senses.index(sense)])) for sense in frequent or senses[:1]]


def neighbours_document(occurrences: Occurrences, queries: Sequence[Query], k: int) -> dict[str, Any]:
    """Return the JSON document of `toolkit senses neighbours`.

    `queries`: sentence, word, position, sense and layers: each layer and neighbours (number among the word's
    occurrences, sentence, position, cosine, sense). `purity`: see `Purity`, null where senses are not known.
    """
    word = queries[0].word
    number = {int(index): place for place, index in enumerate(occurrences.of(word))}

    def row(near: Neighbour) -> dict[str, Any]:
        return {
            "number": number[near.index],
            "sentence": " ".join(occurrences.tokens(near.index)),
            "position": int(occurrences.positions[near.index]),
            "cosine": near.cosine,
            "sense": occurrences.senses[near.index],
        }

    documents = [
        {
            "sentence": " ".join(query.tokens),
            "word": query.word,
            "position": query.position,
            "sense": query.sense,
            "layers": [
                {"layer": layer, "neighbours": [row(near) for near in neighbours(occurrences, query, layer, k)]}
                for layer in range(occurrences.n_layers)
            ],
        }
        for query in queries
    ]
    purity = purity_at_k(occurrences, word, k)
    return {
        "word": word,
        "occurrences": len(number),
        "model_fingerprint": occurrences.model_fingerprint,
        "queries": documents,
        "purity": purity and {**vars(purity)},
    }


def neighbours_text(document: dict[str, Any], columns: int) -> str:
    """Lay a document of `neighbours_document` out for a terminal of so many columns: layers side by side."""
    word, queries = document["word"], document["queries"]
    n_layers = len(queries[0]["layers"])
    width = max(MIN_COLUMN, (columns - len(GAP) * (n_layers - 1)) // n_layers)
    letters = _letters(queries)
    lines = [f"{document['occurrences']} occurrences of {word}, cosines in each layer's full space"]
    lines += [f"  {letter} = {sense}" for sense, letter in letters.items()]
    for query in queries:
        tokens = query["sentence"].split(" ")
        sense = f"  ({letters[query['sense']]})" if query["sense"] else ""
        lines += ["", keyword_in_context(tokens, query["position"], max(columns - len(sense), MIN_COLUMN)) + sense]
        cells = [[f"layer {layer['layer']}"] + [_cell(n, letters, width) for n in layer["neighbours"]]
                 for layer in query["layers"]]  # fmt: skip
        rows = zip(*cells, strict=True)
        lines += [GAP.join(_pad(cell, width) for cell in row).rstrip() for row in rows]
    if document["purity"]:
        lines += ["", _purity_line(Purity(**document["purity"]), word)]
    return "\n".join(lines)


def keyword_in_context(tokens: Sequence[str], position: int, width: int) -> str:
    """Return the sentence around a token, the token in [ ], in at most `width` columns of a terminal."""
    word = f"[{tokens[position]}]"
    room = max(0, width - _width(word) - 2)
    left, right = " ".join(tokens[:position]), " ".join(tokens[position + 1 :])
    left_room = max(room // 2, room - _width(right))
    left = _cut(left[::-1], min(left_room, room))[::-1]
    right = _cut(right, room - _width(left))
    return _cut(" ".join(part for part in (left, word, right) if part), width)


def _letters(queries: list[dict[str, Any]]) -> dict[str, str]:
    """A short sign for each sense on show: a, b, …, z, then numbers."""
    near = [n["sense"] for query in queries for layer in query["layers"] for n in layer["neighbours"]]
    senses = sorted({sense for sense in [*(query["sense"] for query in queries), *near] if sense})
    signs = [*string.ascii_lowercase, *map(str, range(1, len(senses)))]
    return dict(zip(senses, signs, strict=False))


def _cell(neighbour: dict[str, Any], letters: dict[str, str], width: int) -> str:
    sense = f"{letters.get(neighbour['sense'], '·')} " if letters else ""
    head = f"{neighbour['cosine']:5.3f} {neighbour['number']:3d} {sense}"
    return head + keyword_in_context(neighbour["sentence"].split(" "), neighbour["position"], width - len(head))


def _purity_line(purity: Purity, word: str) -> str:
    layers = ", ".join(f"layer {layer} {value:.3f}" for layer, value in enumerate(purity.layers))
    return (
        f"purity@{purity.k} of {word} (n = {purity.n}, {purity.senses} senses): {layers}; "
        f"majority sense {purity.majority:.3f}, random neighbours {purity.chance:.3f}"
    )


def _width(text: str) -> int:
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _cut(text: str, width: int) -> str:
    if _width(text) <= width:
        return text
    kept, used = [], 1  # the mark of what is left out takes one
    for character in text:
        used += _columns(character)
        if used > width:
            break
        kept.append(character)
    return "".join(kept) + "…" if width > 0 else ""


def _pad(text: str, width: int) -> str:
    return text + " " * max(0, width - _width(text))
