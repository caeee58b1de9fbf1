"""What the training reads: every token once an epoch, each direction with the right next word."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.bilm.spec import BiLMSpec
from toolkit.config import Pretrain
from toolkit.errors import DataError
from toolkit.pretrain.batches import Batches, Lexicon, MarkedText
from toolkit.text.vocab import BOS, EOS, UNK, Vocabulary

WORDS = ["the", "unknown", "th", "."]
SPEC = BiLMSpec(4, ((1, 3), (3, 5)), 1, "relu", 20, 8, 4, 2, 3.0, 3.0, True)


def stream(sentences: list[list[int]]):
    starts = np.concatenate([[0], np.cumsum([len(s) for s in sentences])]).astype(np.int64)
    tokens = np.array([t for s in sentences for t in s], np.int32)
    return SimpleNamespace(tokens=tokens, starts=starts, n_sentences=len(sentences), n_tokens=len(tokens))


SENTENCES = [[0, 1, 3], [2, 3], [0]]
MARK_B, MARK_E = len(WORDS), len(WORDS) + 1


def test_forward_reads_each_sentence_between_its_marks() -> None:
    text = MarkedText(stream(SENTENCES), np.arange(3), False, MARK_B, MARK_E)
    inputs, targets = text.read(np.arange(len(text)))
    assert inputs.tolist() == [MARK_B, 0, 1, 3, MARK_B, 2, 3, MARK_B, 0]
    assert targets.tolist() == [0, 1, 3, MARK_E, 2, 3, MARK_E, 0, MARK_E]


def test_backward_begins_with_the_end_mark_and_ends_with_the_begin_mark() -> None:
    text = MarkedText(stream(SENTENCES), np.array([2, 0, 1]), True, MARK_E, MARK_B)
    inputs, targets = text.read(np.arange(len(text)))
    assert inputs.tolist() == [MARK_E, 0, MARK_E, 3, 1, 0, MARK_E, 3, 2]
    assert targets.tolist() == [0, MARK_B, 3, 1, 0, MARK_B, 3, 2, MARK_B]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=8), st.booleans())
def test_every_target_of_a_text_occurs_exactly_once(sentences: list[list[int]], backward: bool) -> None:
    order = np.random.default_rng(0).permutation(len(sentences))
    text = MarkedText(stream(sentences), order, backward, MARK_B, MARK_E)
    _, targets = text.read(np.arange(len(text)))
    expected = sorted([t for s in sentences for t in s] + [MARK_E] * len(sentences))
    assert sorted(targets.tolist()) == expected


def make(sentences: list[list[int]], **changes) -> Batches:
    vocabulary = Vocabulary([BOS, EOS, UNK, "the", ".", "unknown"])
    values = {"batch_size": 2, "unroll_steps": 3, "negatives": 4, "dropout": 0.5, "seed": 3} | changes
    lexicon = Lexicon.build(WORDS, vocabulary, SPEC.max_characters)
    return Batches(stream(sentences), lexicon, len(vocabulary), SPEC, Pretrain(**values))


def test_a_batch_depends_on_seed_and_step_alone() -> None:
    straight, jumped = make(SENTENCES * 20), make(SENTENCES * 20)
    for step in range(60):
        batch = straight[step]
    again = jumped[59]
    for name in ("inputs", "rows", "targets", "sampled", "log_expected", "kept"):
        np.testing.assert_array_equal(getattr(batch, name), getattr(again, name))
    assert not np.array_equal(make(SENTENCES * 20, seed=4)[59].kept, again.kept)


def test_places_lead_back_to_the_words_and_their_ids() -> None:
    batches = make(SENTENCES * 20)
    batch = batches[7]
    rows = np.concatenate([np.pad(g, ((0, 0), (0, 20 - g.shape[1])), constant_values=261) for g in batch.groups])
    read = [text.read(7 * 3 + np.arange(3)[:, None] + batches.row_length * np.arange(2)) for text in batches._texts(0)]
    for direction in range(2):
        np.testing.assert_array_equal(rows[batch.inputs[:, direction]], batches.lexicon.rows[read[direction][0]])
        expected = batches.lexicon.targets[read[direction][1]].ravel()
        np.testing.assert_array_equal(batch.rows[batch.targets[direction]], expected)


def test_a_word_outside_the_vocabulary_is_read_as_itself_and_predicted_as_unk() -> None:
    lexicon = make(SENTENCES * 20).lexicon
    assert lexicon.targets[2] == 2
    assert lexicon.rows[2, :4].tolist() == [259, ord("t") + 1, ord("h") + 1, 260 - 1 + 1]


def test_dropout_masks_have_the_asked_share() -> None:
    kept = make(SENTENCES * 200, batch_size=16, dropout=0.1)[0].kept
    assert kept.shape == (3, 3, 2, 16, 4)
    assert abs(kept.mean() - 0.9) < 0.03


def test_a_text_too_small_for_one_step_says_what_would_fit() -> None:
    with pytest.raises(DataError, match=r"9 tokens, one step reads 8 rows of 3.*batch_size=1"):
        make(SENTENCES, batch_size=8)
