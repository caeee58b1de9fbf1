"""How sentences are laid into the rows of a batch."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from toolkit.embed.packing import ROWS, pieces

LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=300)


@given(LENGTHS, st.integers(1, 2000))
def test_each_sentence_lies_in_one_row_forwards_and_backwards_from_the_same_step(lengths, slots):
    total, rows = sum(lengths), {}
    for piece in pieces(lengths, slots):
        for row in range(piece.tokens.shape[1]):
            rows.setdefault(row, []).append((piece.tokens[:, row], piece.restarts[:, row]))
    first = np.cumsum(lengths) - lengths
    seen = []
    for parts in rows.values():
        tokens, restarts = (np.concatenate(part) for part in zip(*parts, strict=True))
        busy = tokens[tokens[:, 0] < total]
        assert (tokens[len(busy) :] == total).all()
        step = 0
        while step < len(busy):
            sentence = int(np.flatnonzero(first == busy[step, 0])[0])
            run = np.arange(first[sentence], first[sentence] + lengths[sentence])
            assert (busy[step : step + len(run)] == np.stack([run, run[::-1]], 1)).all()
            assert restarts[step : step + len(run)].tolist() == [step > 0] + [False] * (len(run) - 1)
            seen.append(sentence)
            step += len(run)
    assert sorted(seen) == list(range(len(lengths)))


@given(LENGTHS, st.integers(1, 2000))
def test_pieces_keep_to_few_shapes_and_to_the_slots_asked_for(lengths, slots):
    widths = [piece.tokens.shape[1] for piece in pieces(lengths, slots)]
    assert set(widths) <= set(ROWS)
    assert widths == sorted(widths, reverse=True)
    assert all(piece.tokens.shape[0] == 1 or piece.restarts.size <= slots for piece in pieces(lengths, slots))


def test_many_sentences_of_mixed_lengths_leave_hardly_a_slot_idle():
    lengths = np.random.default_rng(1).integers(3, 80, 2000).tolist()
    slots = sum(piece.restarts.size for piece in pieces(lengths, 8192))
    assert slots < 1.02 * sum(lengths)


def test_a_long_sentence_among_short_ones_costs_few_rows_to_its_end():
    lengths = [20000, *[10] * 200]
    slots = sum(piece.restarts.size for piece in pieces(lengths, 8192))
    assert slots < 1.25 * sum(lengths)
