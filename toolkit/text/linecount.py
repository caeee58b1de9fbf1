"""Counting the lines of a corpus in bounded memory: duplicates, lengths, the longest one."""

import hashlib
from array import array
from collections import Counter
from typing import Any

import numpy as np

REPEATED = 3  # most repeated lines that are named


class LineCounter:
    """Takes lines piece by piece, file by file; memory: 12 bytes for each line that is not blank.

    Lines are the same when they are, but for blanks at their ends, byte for byte: they are told apart by the first 8
    bytes of BLAKE2b, so that among a thousand million lines about 0.03 are expected to be taken for another one.
    """

    def __init__(self) -> None:
        self.number = 1  # of the line that the next piece belongs to, in its file
        self.last = 0  # number of the last line of the file that was ended last
        self.blank = self.cut = 0
        self._longest = (0, 0, 0)  # characters, -file, -line: of equal ones the first is the largest
        self._hashes, self._numbers = array("Q"), array("I")
        self._begins = [0]  # of each file, in the two arrays
        self._lengths: Counter[int] = Counter()
        self._digest = hashlib.blake2b(digest_size=8)
        self._length = 0
        self._pieces = 0
        self._empty = True

    def add(self, piece: bytes, characters: int, whole: bool) -> None:
        """Take a piece of a line, its length in characters, and whether it ends the line."""
        if self._empty:
            piece = piece.lstrip()
        if whole:
            piece = piece.rstrip()
        self._empty = self._empty and not piece
        self._digest.update(piece)
        self._length += characters
        self._pieces += 1
        if whole:
            self._end_line()

    @property
    def column(self) -> int:
        """Return the column, from 1, at which the next piece begins."""
        return self._length + 1

    def end_file(self) -> None:
        """End the file, and its last line where that had no end."""
        if self._pieces:
            self._end_line()
        self._begins.append(len(self._hashes))
        self.last, self.number = self.number - 1, 1

    def _end_line(self) -> None:
        if self._empty:
            self.blank += 1
        else:
            self._hashes.append(int.from_bytes(self._digest.digest(), "little"))
            self._numbers.append(self.number)
            self._lengths[self._length] += 1
            self._longest = max(self._longest, (self._length, 1 - len(self._begins), -self.number))
        self.cut += self._pieces > 1
        self._digest = hashlib.blake2b(digest_size=8)
        self._length = self._pieces = 0
        self._empty = True
        self.number += 1

    def document(self, files: list[str]) -> dict[str, Any]:
        """Return the figures, with the files by their names.

        Returns:
            total (lines), blank, text (lines that are not blank), duplicate (of these, how many repeat one before),
            duplicate_share, most_repeated (list of times, file, line of the first), characters (median and
            percentile_99, by the nearest rank, and longest: characters, file, line) and cut (lines longer than what
            tokenising holds as one).
        """
        hashes = np.frombuffer(self._hashes, np.uint64) if self._hashes else np.zeros(0, np.uint64)
        ordered = np.sort(hashes)
        starts = np.flatnonzero(np.concatenate([np.ones(min(len(ordered), 1), bool), ordered[1:] != ordered[:-1]]))
        times = np.diff(starts, append=len(ordered))
        duplicate = len(ordered) - len(starts)
        repeated = []
        for i in np.argsort(-times, kind="stable")[:REPEATED]:
            if times[i] > 1:
                first = int(np.argmax(hashes == ordered[starts[i]]))
                repeated.append({"times": int(times[i]), **self._place(first, files)})
        length, file, line = self._longest
        return {
            "total": self.blank + len(ordered),
            "blank": self.blank,
            "text": len(ordered),
            "duplicate": duplicate,
            "duplicate_share": round(duplicate / max(len(ordered), 1), 6),
            "most_repeated": repeated,
            "characters": {
                "median": self._quantile(0.5),
                "percentile_99": self._quantile(0.99),
                "longest": {"characters": length, "file": files[-file], "line": -line} if length else None,
            },
            "cut": self.cut,
        }

    def _place(self, place: int, files: list[str]) -> dict[str, Any]:
        file = int(np.searchsorted(self._begins, place, side="right")) - 1
        return {"file": files[file], "line": self._numbers[place]}

    def _quantile(self, share: float) -> int | None:
        rank = share * self._lengths.total()
        passed = 0
        for length, lines in sorted(self._lengths.items()):
            passed += lines
            if passed >= rank:
                return length
        return None
