"""A fingerprint of a tokenised text, so that what was made from a text can be told from what was made from another."""

import hashlib
from collections.abc import Iterable, Sequence


class TextMark:
    """The fingerprint of sentences that come one behind the other.

    It is the beginning of the SHA-256 of the text with a sentence a line, tokens parted by one blank, each line ended
    by a line feed, in UTF-8: of a file that is written so, the first 16 digits that `sha256sum` prints.
    """

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, tokens: Sequence[str]) -> None:
        """Take the next sentence."""
        self._digest.update((" ".join(tokens) + "\n").encode("utf-8"))

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits of all sentences so far."""
        return self._digest.hexdigest()[:16]


def text_fingerprint(sentences: Iterable[Sequence[str]]) -> str:
    """Return the fingerprint of a whole text, see `TextMark`."""
    mark = TextMark()
    for tokens in sentences:
        mark.add(tokens)
    return mark.fingerprint
