"""Sentences laid end to end in the rows of a batch, so that hardly any of its slots is spent on padding."""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

ROWS = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256)  # of a batch: few sizes, since each is compiled
STEP_ROWS = 32  # a step costs about as much as these rows of it: the weights are read once a step


@dataclass(frozen=True)
class Piece:
    """Some steps of a packed batch.

    Attributes:
        tokens: int32 [T, B, 2], the token that the forward and the backward direction read in each slot, as its number
            in the sentences one after the other; the count of all tokens where a slot is idle.
        restarts: bool [T, B], whether a sentence starts in a slot behind another one.
    """

    tokens: np.ndarray
    restarts: np.ndarray


def pieces(lengths: Sequence[int], slots: int) -> Iterator[Piece]:
    """Pack sentences into rows and yield the steps of these, in order.

    A row keeps its place from piece to piece; behind the end of many rows, the pieces have fewer of them. Every
    sentence lies in one row, in both directions from the same step on. What is yielded depends on the lengths alone.

    Args:
        lengths: tokens of each sentence, 1 at least.
        slots: T times B of a piece at most, but one step at least.

    Yields:
        pieces with B of `ROWS`, never growing.
    """
    total, longest = sum(lengths), max(lengths)
    rows = min(ROWS, key=lambda rows: max(longest, -(-total // rows)) * (rows + STEP_ROWS))
    packed = _rows(lengths, rows)
    loads = [sum(lengths[i] for i in row) for row in packed]
    tokens = np.full((loads[0], rows, 2), total, np.int32)
    restarts = np.zeros((loads[0], rows), bool)
    first = np.cumsum(lengths) - lengths
    for number, row in enumerate(packed):
        step = 0
        for i in row:
            run = np.arange(first[i], first[i] + lengths[i])
            tokens[step : step + lengths[i], number] = np.stack([run, run[::-1]], 1)
            restarts[step, number] = step > 0
            step += lengths[i]
    step = 0
    while step < loads[0]:
        busy = sum(load > step for load in loads)
        rows = next(rows for rows in ROWS if rows >= busy)
        end = step + max(1, slots // rows)
        yield Piece(tokens[step:end, :rows], restarts[step:end, :rows])
        step = end


def _rows(lengths: Sequence[int], rows: int) -> list[list[int]]:
    """Sentences by row, rows of like loads (the longest sentence first, to the row that holds least), longest first."""
    held = [(0, number) for number in range(rows)]
    packed: list[list[int]] = [[] for _ in range(rows)]
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        load, number = heapq.heappop(held)
        packed[number].append(i)
        heapq.heappush(held, (load + lengths[i], number))
    return [packed[number] for load, number in sorted(held, key=lambda entry: (-entry[0], entry[1]))]
