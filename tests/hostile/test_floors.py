"""Mixes, word vectors and heads that do not go together: one line before anything is computed."""

import pytest

from toolkit.files import write_text

MIXES = {
    "bag": "--no-floors",
    "majority": "--no-floors",
    "bag+bag": "--no-floors",
    "bag+majority": "--no-floors",
    "bag,learned": "--no-floors",
    "bag+": "unknown mix",
    "bag+bag+top": "unknown mix",
    "+learned": "unknown mix",
    "bag learned": "unknown mix",
    "BAG+learned": "unknown mix",
    "bag+Learned": "unknown mix",
    "learned+bag": "unknown mix",
    "bag-learned": "unknown mix",
    "bag+layer": "unknown mix",
    "bag+layer:": "unknown mix",
    "bag+layer:-1": "layers 0 to 2",
    "bag+layer:3": "layers 0 to 2",
    "bag+layer:x": "layers 0 to 2",
    "bag+layer:1e0": "layers 0 to 2",
    "bag+fixed:": "unknown mix",
    "bag+fixed:1": "3 numbers",
    "bag+fixed:1,2": "3 numbers",
    "bag+fixed:1,2,nan": "unknown mix 'nan'",
    "bag+fixed:1,2,3,4": "3 numbers",
    "bag+top,bag+top": "twice",
    "bag+top, bag+top": "twice",
    "": "no mix",
    ",": "no mix",
    " , ": "no mix",
    "none,none": "twice",
    "\u202ebag": "unknown mix",
}
VECTORS = {
    "trained:": "width",
    "trained:0": "width",
    "trained:-1": "width",
    "trained:1.5": "width",
    "trained:x": "width",
    "trained: 5": "width",
    "trained:inf": "width",
    "trained:\u0665": "width",
    "trained": "no word vectors",
    "Trained:100": "no word vectors",
    "models": "no word vectors",
    "missing.txt": "no word vectors",
    ".": "no word vectors",
    "": "no word vectors",
    " ": "no word vectors",
    "/": "no word vectors",
    "empty.txt": "empty",
    "words.txt": "line 1",
    "nan.txt": "line 1",
}
FILES = {"empty.txt": "", "words.txt": "bank money river\n", "nan.txt": "bank nan 1\n"}
FLAGS = [("--floors", "--no-floors=1"), ("--no-floor",), ("--floors=no",), ("--no-floors", "--mix"), ("--floors", "x")]


@pytest.fixture
def evaluated(toolkit, tiny_model, tmp_path):
    rows = [f"the {'bank' if n % 2 else 'money'} w{n},{'yes' if n % 2 else 'no'}" for n in range(40)]
    write_text(tmp_path / "data.csv", "\n".join(["text,label", *rows]) + "\n")
    for name, text in FILES.items():
        write_text(tmp_path / name, text)

    def run(*words):
        fixed = ("--task", "csv", "--data", tmp_path / "data.csv", "--model", tiny_model, "--head", "linear")
        return toolkit("evaluate", *fixed, *words)

    return run


@pytest.mark.parametrize("mix", MIXES)
def test_a_mix_that_is_none_is_refused(evaluated, mix, tmp_path):
    evaluated("--mix", mix, "--word-vectors", "model").refused(MIXES[mix])
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("vectors", VECTORS)
def test_word_vectors_that_are_none_are_refused(evaluated, vectors, tmp_path):
    evaluated("--mix", "none", "--word-vectors", vectors).refused(VECTORS[vectors])
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("flags", FLAGS)
def test_a_flag_that_is_none_is_wrong_usage(evaluated, flags):
    assert evaluated("--mix", "top", *flags).code == 2
