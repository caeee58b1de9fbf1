"""Files of word vectors: every format gives the same table; what a file lacks is mapped or zeros, and said."""

import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from tasks.adapter.classifier import Classifier
from tasks.adapter.features import Features
from tasks.adapter.head import find_head
from tasks.adapter.representation import Representation
from tasks.adapter.step import parts_of, train_step
from tasks.adapter.wordvectors import width_of, word_table
from toolkit.config import Evaluate
from toolkit.errors import FormatError, UsageError

SENTENCES = [("the", "york", "bank"), ("the", "zyx")]
TOKENS, WIDTH = 5, 4
VECTORS = {"the": [1.0, 2.0, 3.0, 4.0], "york": [5.0, 6.0, 7.0, 8.0], "bank": [0.5, -1.0, 0.0, 2.0]}


def features() -> Features:
    layers = np.random.default_rng(1).normal(size=(TOKENS, 3, 6)).astype(np.float16)
    layers[3, 0] = layers[0, 0]  # "the" has one token vector
    layers[:, 0, 3:] = layers[:, 0, :3]
    return Features(layers, np.array([0, 3, 5]))


def write(folder: Path, form: str) -> Path:
    path = folder / {"glove": "v.txt", "word2vec": "v.vec", "binary": "v.bin"}[form]
    lines = [f"{word} {' '.join(map(str, vector))}\n" for word, vector in VECTORS.items()]
    if form == "binary":
        parts = [word.encode() + b" " + struct.pack("<4f", *vector) + b"\n" for word, vector in VECTORS.items()]
        path.write_bytes(b"3 4\n" + b"".join(parts))
    else:
        path.write_text(("3 4\n" if form == "word2vec" else "") + "".join(lines), encoding="utf-8")
    return path


def table(path: Path | str, **more):
    return word_table(Evaluate(word_vectors=str(path), **more), SENTENCES, features(), 2)


@pytest.mark.parametrize("form", ["glove", "word2vec", "binary"])
def test_each_format_gives_every_token_its_vector(tmp_path, form):
    path = write(tmp_path, form)
    assert width_of(Evaluate(word_vectors=str(path))) == WIDTH
    found = table(path, unknown_words="zeros")
    words = [word for sentence in SENTENCES for word in sentence]
    for word, row in zip(words, found.words, strict=True):
        np.testing.assert_allclose(found.vectors[row], VECTORS.get(word, [0.0] * WIDTH))
    assert "3 of 4 words (80.0% of the tokens)" in found.coverage and "zeros" in found.coverage


def test_an_unknown_word_is_mapped_from_its_token_vector(tmp_path):
    """With the file's vectors a linear function of the token vectors, the map finds that of an unknown word."""
    rng = np.random.default_rng(2)
    names = [f"w{number}" for number in range(400)]
    layers = np.zeros((400, 2, 8), np.float16)
    layers[:, 0, :4] = rng.normal(0, 3, (400, 4))
    expected = layers[:, 0, :4].astype(float) @ rng.normal(size=(4, 3)) + 1
    lines = [f"{name} {' '.join(map(str, row))}" for name, row in zip(names[:-1], expected[:-1], strict=True)]
    (tmp_path / "v.txt").write_text("\n".join(lines))
    settings = Evaluate(word_vectors=str(tmp_path / "v.txt"))
    found = word_table(settings, [names], Features(layers, np.array([0, 400])), 2)
    np.testing.assert_allclose(found.vectors[found.words[-1]], expected[-1], atol=0.05)


def test_trained_vectors_leave_words_unknown_that_train_lacks():
    found = table("trained:7")
    assert found.trained and found.vectors.shape == (5, 7)
    known = found.words_known(np.array([0, 1, 2]))
    assert known[4] == 0 and (known[:4] > 0).all()
    start = found.start(1)
    assert not start[0].any() and np.array_equal(start, found.start(1)) and not np.array_equal(start, found.start(2))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.txt", b"the 1 2\nbank 1\n", "line 2: expected a word and 2 numbers"),
        ("v.txt", b"the 1 nan\n", "line 1: number 2 is nan; word vectors are finite"),
        ("v.txt", b"", "is empty"),
        ("v.bin", b"3 4\nthe " + bytes(16) + b"bank " + bytes(3), "ends within word 2 of 3"),
        ("v.bin", struct.pack("<ii", 793712314, 12), "is a fastText model: use the .vec"),
        ("v.bin", b"hello", "line 1: expected a word and 1 numbers, found 0"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FormatError, match=message):
        table(tmp_path / name)


def test_a_file_of_other_words_and_a_missing_one_are_refused(tmp_path):
    (tmp_path / "v.txt").write_text("der 1 2\n")
    with pytest.raises(UsageError, match="holds none of the 4 words"):
        table(tmp_path / "v.txt")
    with pytest.raises(UsageError, match="no word vectors at"):
        width_of(Evaluate(word_vectors=str(tmp_path / "missing.txt")))
    with pytest.raises(UsageError, match="as in trained:100"):
        width_of(Evaluate(word_vectors="trained:x"))


def test_a_word_of_a_text_file_may_hold_a_blank(tmp_path):
    (tmp_path / "v.txt").write_text("the 1 2\nnew york 3 4\n")
    found = word_table(Evaluate(word_vectors=str(tmp_path / "v.txt"), unknown_words="zeros"), [("new york",)], None, 2)
    assert found.vectors[1].tolist() == [3, 4]


def test_a_trained_word_takes_one_step_of_adam_however_often_it_stands_in_a_batch():
    settings = Evaluate(mix="none", head="bilstm", hidden=4, dropout=0.0, word_vectors="trained:4", learning_rate=0.01)
    shown = Representation.parse("none", True, 3, 6, x_k_width=4)
    start = np.ones((3, 4), np.float32)
    classifier = Classifier(shown, find_head("bilstm"), 2, settings, 1, table=start, train_table=True)
    step = train_step(classifier, parts_of(classifier, settings), settings, np.ones(2, np.float32))
    no_bag = np.zeros((1, 0), np.float32)
    batch = np.zeros((1, 4, 3, 6), np.float16), np.array([4]), np.array([[1, 1, 1, 1]]), np.array([-1]), no_bag
    step(*batch, np.array([0]))
    moved = np.abs(classifier.table.numpy() - start).max(1)
    np.testing.assert_allclose(moved, [0, 0.01, 0], atol=1e-5)


def test_one_long_token_among_many_takes_no_more_memory_than_its_length():
    words = [f"w{number}" for number in range(20_000)] + ["x" * 2_000]
    tracemalloc.start()
    found = word_table(Evaluate(word_vectors="trained:2"), [words], None, 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.vectors) == 20_002 and peak < 20_000_000  # as texts of one width: 160 MB
