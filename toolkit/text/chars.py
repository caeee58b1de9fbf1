"""Words to character ids: the UTF-8 byte mapping of the published models.

Ids are those of inference everywhere in the toolkit, in training too: 0 is the mask, a byte b is b + 1, and five marks
follow. The 261 rows of a published `char_embed` are ids 1 to 261.
"""

from collections.abc import Sequence

import numpy as np

MASK = 0
BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, PADDING = 257, 258, 259, 260, 261
N_CHARACTERS = 262


def char_rows(words: Sequence[str], max_characters: int) -> np.ndarray:
    """Return the character ids of words: begin-of-word mark, bytes, end-of-word mark, padding.

    Args:
        words: any texts; `<S>` and `</S>` become the sentence marks.
        max_characters: C, marks included; the bytes after the first C - 2 are cut, even inside a character.

    Returns:
        int32 [n, C], never 0.
    """
    rows = np.full((len(words), max_characters), PADDING, np.int32)
    rows[:, 0] = BEGIN_WORD
    for row, word in zip(rows, words, strict=True):
        if word in SENTENCE_MARKS:
            row[1:3] = SENTENCE_MARKS[word], END_WORD
            continue
        # Surrogates (arguments whose bytes were no UTF-8) have no UTF-8 form and are left out.
        data = word.encode("utf-8", "ignore")[: max_characters - 2]
        row[1 : 1 + len(data)] = np.frombuffer(data, np.uint8)
        row[1 : 1 + len(data)] += 1
        row[1 + len(data)] = END_WORD
    return rows


def marked_length(word: str, max_characters: int) -> int:
    """Return how many ids of a word's row stand before its padding."""
    return 3 if word in SENTENCE_MARKS else min(len(word.encode("utf-8", "ignore")) + 2, max_characters)


SENTENCE_MARKS = {"<S>": BEGIN_SENTENCE, "</S>": END_SENTENCE}
