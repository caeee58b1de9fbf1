"""Models that read words: rows of a table, `<UNK>` for words outside it, and steps that move what they read."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from oracle import write_random_model

from toolkit.bilm.backend import tf
from toolkit.bilm.folder import load_model
from toolkit.bilm.model import BiLM
from toolkit.bilm.softmax import sampled_softmax_loss
from toolkit.bilm.spec import BiLMSpec
from toolkit.config import Pretrain
from toolkit.embed.encoder import Encoder
from toolkit.errors import FormatError, UsageError
from toolkit.pretrain.batches import Batch, Lexicon, unique_words
from toolkit.pretrain.graph import TrainingGraph
from toolkit.text.vocab import BOS, EOS, UNK, Vocabulary

VOCABULARY = Vocabulary([BOS, EOS, UNK, "the", "bank", "of", "river", "unused"])
SPEC = BiLMSpec(0, (), 0, "relu", 0, 8, 4, 2, 3.0, 3.0, True, n_words=len(VOCABULARY))
SETTINGS = Pretrain(batch_size=2, unroll_steps=3, dropout=0.0, learning_rate=0.5, clip_norm=0.05, optimizer="adagrad")


def batch(spec: BiLMSpec) -> Batch:
    """Return a batch in which "the" stands often, two words are unknown, and "unused" is not read."""
    words = ["the", "bank", "of", "strange", "odd", "river"]
    lexicon = Lexicon.build(words, VOCABULARY, spec.max_characters)
    tokens = np.array([[0, 0], [3, 4], [0, 1]])[:, None].repeat(spec.directions, 1)  # [T, R, B]
    groups, places = unique_words(lexicon, tokens, spec)
    rows = np.arange(len(VOCABULARY), dtype=np.int32)
    return Batch(
        groups=groups,
        inputs=places,
        rows=rows,
        targets=np.full((spec.directions, 6), 4, np.int32),
        sampled=np.tile(rows, (spec.directions, 1)),
        log_expected=np.zeros((spec.directions, len(rows)), np.float32),
        kept=np.empty((0, 3, spec.directions, 2, spec.projection_dim), bool),
    )


def test_words_outside_the_vocabulary_share_the_row_of_unk() -> None:
    (rows,) = batch(SPEC).groups
    assert rows.tolist() == [2, 3, 4]  # <UNK>, the, bank: distinct and rising
    np.testing.assert_array_equal(rows[batch(SPEC).inputs[:, 0]], [[3, 3], [2, 2], [3, 4]])


@pytest.mark.parametrize("spec", [SPEC, replace(SPEC, bidirectional=False)], ids=["both", "forward"])
def test_the_sparse_update_is_that_of_a_dense_adagrad(spec: BiLMSpec) -> None:
    graph = TrainingGraph(BiLM(spec, seed=1), len(VOCABULARY), SETTINGS, tf.float32)
    one = batch(spec)
    table = graph.bilm.embedding.numpy()
    others = [*graph.dense, *graph.softmax]
    with tf.GradientTape() as tape:
        # As one would write it: a dense table, looked up token by token.
        dense = tf.constant(table)
        tape.watch(dense)
        looked_up = tf.one_hot(one.groups[0][one.inputs], len(VOCABULARY)) @ dense
        graph.bilm.embedding, graph.words = tf.reshape(looked_up, [-1, 4]), [None]
        places = np.arange(one.inputs.size).reshape(one.inputs.shape)
        top, _ = graph.forward((np.arange(one.inputs.size),), places, graph.states, None)
        h = tf.reshape(tf.transpose(top, [1, 0, 2, 3]), [spec.directions, -1, 4])
        weight, bias = (tf.gather(v, one.rows) for v in graph.softmax)
        loss = 3.0 * sampled_softmax_loss(h, weight, bias, one.targets, one.sampled, one.log_expected)
    gradient, *rest = tape.gradient(loss, [dense, *others])
    norm = tf.linalg.global_norm([gradient, *(tf.convert_to_tensor(g) for g in rest)]).numpy()
    assert norm > SETTINGS.clip_norm  # so that the table's part of the norm matters
    gradient = gradient.numpy() * SETTINGS.clip_norm / norm
    expected = table - 0.5 * gradient / np.sqrt(1.0 + gradient**2)

    graph = TrainingGraph(BiLM(spec, seed=1), len(VOCABULARY), SETTINGS, tf.float32)
    _, found = graph.train(one)
    assert found == pytest.approx(norm, rel=1e-5)
    np.testing.assert_allclose(graph.bilm.embedding, expected, atol=1e-6)
    moved = (graph.bilm.embedding.numpy() != table).any(1)
    assert np.flatnonzero(moved).tolist() == [2, 3, 4]


@pytest.fixture
def words_model(tmp_path: Path) -> Path:
    return write_random_model(tmp_path / "words", 5, ("the", "bank", "of"), reads_words=True)


def test_an_unknown_word_is_unk_and_its_context_still_counts(words_model: Path) -> None:
    first, second, third = Encoder(load_model(words_model)).encode(
        [["the", "Zyklon", "bank"], ["the", UNK, "bank"], ["of", "Zyklon", "of"]]
    )
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first[0, 1], third[0, 1])
    assert np.abs(first[1:, 1] - third[1:, 1]).max() > 1e-3


def test_a_vocabulary_of_another_size_is_refused_with_both_numbers(words_model: Path) -> None:
    with (words_model / "vocab.txt").open("a") as file:
        file.write("more\n")
    with pytest.raises(FormatError, match=r"vocab\.txt holds 7 words, n_tokens_vocab of options\.json is 6"):
        load_model(words_model)


def test_without_its_vocabulary_it_cannot_encode(words_model: Path) -> None:
    (words_model / "vocab.txt").unlink()
    with pytest.raises(UsageError, match=r"reads words, not characters: copy its vocab\.txt"):
        Encoder(load_model(words_model))


def test_a_table_of_another_size_is_refused_with_both_shapes(words_model: Path) -> None:
    options = json.loads((words_model / "options.json").read_text())
    (words_model / "options.json").write_text(json.dumps(options | {"n_tokens_vocab": 9}))
    with pytest.raises(FormatError, match=r"embedding has the shape \(6, 8\), options\.json asks for \(9, 8\)"):
        load_model(words_model)
