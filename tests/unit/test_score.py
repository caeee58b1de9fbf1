"""Scoring: the likelihoods of a plain NumPy computation, sums that agree, marks counted, warm starts."""

import gzip
import json
import math
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import BOS, EOS, Oracle, write_random_model, write_random_softmax
from typer.testing import CliRunner

from toolkit.bilm.folder import load_model
from toolkit.bilm.warming import PASSES, WARMING
from toolkit.cli.main import app
from toolkit.embed import score as score_module
from toolkit.embed.score import Scorer, score
from toolkit.errors import DataError, UsageError

LINES = ["the bank of the river", "", "a", "Zyklon was in the unknown spring .", "the bank of the river", ""]


@pytest.fixture(scope="module")
def model(scoring_model: Path):
    return load_model(scoring_model)


def reference(folder: Path, tokens: list[str], warm: bool = True) -> tuple[float, float]:
    """Forward and backward negative log-likelihood in float64, straight from the definition."""
    oracle = Oracle(folder / "options.json", folder / "weights.hdf5")
    with h5py.File(folder / "softmax.h5") as file:
        weight, bias = file["softmax/W"][()].astype(np.float64), file["softmax/b"][()].astype(np.float64)
    words = (folder / "vocab.txt").read_text().splitlines()
    state = None
    for _ in range(PASSES if warm else 0):
        _, state = oracle.encode(WARMING.split(), state)
    layers, _ = oracle.encode(tokens, state, marks=True)
    p, full = weight.shape[1], [BOS, *tokens, EOS]
    ids = [words.index(word if word in words else "<UNK>") for word in full]

    def nll(hidden: np.ndarray, target: int) -> float:
        logits = hidden @ weight.T + bias
        return math.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[target]

    forward = sum(nll(layers[-1, t, :p], ids[t + 1]) for t in range(len(full) - 1))
    both = layers.shape[-1] == 2 * p
    backward = sum(nll(layers[-1, t, p:], ids[t - 1]) for t in range(1, len(full))) if both else math.nan
    return forward, backward


@pytest.mark.parametrize("state", ["warm", "zero"])
def test_likelihoods_are_those_of_a_plain_computation(model, scoring_model: Path, state: str):
    sentences = [line.split() for line in LINES if line]
    for tokens, found in zip(sentences, Scorer(model, state).scores(sentences), strict=True):
        forward, backward = reference(scoring_model, tokens, state == "warm")
        assert (found.forward, found.backward) == pytest.approx((forward, backward), rel=1e-5)
        assert found.targets == len(tokens) + 1
        assert found.mean == pytest.approx((forward + backward) / (2 * len(tokens) + 2), rel=1e-5)


def test_a_forward_model_is_scored_forward_only(tmp_path: Path):
    folder = write_random_model(tmp_path / "model", 5, ("the", "bank", "of"), reads_words=True, bidirectional=False)
    write_random_softmax(folder, 6)
    (tmp_path / "text.txt").write_text("\n".join(LINES))
    document = score(load_model(folder), tmp_path / "text.txt", "zero")
    row, blank = document["sentences"][:2]
    forward, _ = reference(folder, LINES[0].split(), warm=False)
    assert row["forward_nll"] == pytest.approx(forward, rel=1e-5)
    assert row["mean_nll"] == pytest.approx(forward / 6, rel=1e-5)
    assert blank == {"tokens": 0, "unknown": 0, "forward_nll": 0.0, "backward_nll": None, "mean_nll": None}
    assert row["backward_nll"] is document["backward_nll"] is document["perplexity_backward"] is None
    assert document["perplexity"] == document["perplexity_forward"]
    result = CliRunner().invoke(app, ["score", str(folder), str(tmp_path / "text.txt")])
    lines = result.stdout.splitlines()
    assert lines[1].split()[3] == "-" and "(forward only)" in lines[-1]


def test_the_sum_of_the_rows_is_the_corpus(model, tmp_path: Path):
    path = tmp_path / "text.txt.gz"
    path.write_bytes(gzip.compress("\n".join(LINES).encode()))
    document = score(model, path)
    rows = document["sentences"]
    assert [row["tokens"] for row in rows] == [len(line.split()) for line in LINES[:-1]]
    targets = sum(row["tokens"] + 1 for row in rows if row["tokens"])
    forward, backward = (sum(row[name] for row in rows) for name in ("forward_nll", "backward_nll"))
    assert document["targets"] == targets and document["tokens"] == 18
    assert document["unknown"] == sum(row["unknown"] for row in rows) == 2
    assert document["perplexity"] == pytest.approx(math.exp((forward + backward) / 2 / targets), rel=1e-12)
    assert document["perplexity_forward"] == pytest.approx(math.exp(forward / targets), rel=1e-12)
    assert rows[1] == {"tokens": 0, "unknown": 0, "forward_nll": 0.0, "backward_nll": 0.0, "mean_nll": None}


def test_the_same_sentence_scores_the_same_wherever_it_stands(model, tmp_path: Path):
    (tmp_path / "text.txt").write_text("\n".join(LINES))
    rows = score(model, tmp_path / "text.txt", batch_tokens=8)["sentences"]
    assert rows[0]["forward_nll"] == pytest.approx(rows[4]["forward_nll"], rel=1e-6)
    assert rows[0]["forward_nll"] != pytest.approx(rows[3]["forward_nll"], rel=1e-3)


def test_pieces_of_logits_change_nothing(model, monkeypatch: pytest.MonkeyPatch):
    (whole,) = Scorer(model).scores([["bank"] * 30])
    monkeypatch.setattr(score_module, "LOGITS_BYTES", 4 * 17 * 4)  # four rows of the 17 words
    (pieces,) = Scorer(model).scores([["bank"] * 30])
    assert (pieces.forward, pieces.backward) == pytest.approx((whole.forward, whole.backward), rel=1e-6)


@settings(max_examples=15, deadline=None)
@given(sentences=st.lists(st.lists(st.sampled_from(["the", "bank", "x"]), max_size=5), max_size=9))
def test_rows_keep_the_order_of_the_lines(model, sentences: list[list[str]]):
    assert [found.tokens for found in Scorer(model, "zero", 16).scores(sentences)] == list(map(len, sentences))


def test_a_model_without_a_softmax_cannot_score(tiny_model: Path):
    with pytest.raises(UsageError, match="holds no softmax"):
        Scorer(load_model(tiny_model))


def test_text_without_tokens_is_refused(model, tmp_path: Path):
    (tmp_path / "blank.txt").write_text("\n\n")
    with pytest.raises(DataError, match="holds no token"):
        score(model, tmp_path / "blank.txt")
    with pytest.raises(UsageError, match="no file at"):
        score(model, tmp_path / "none.txt")


def test_the_command_prints_a_row_a_sentence_and_the_perplexity(scoring_model: Path, tmp_path: Path):
    (tmp_path / "text.txt").write_text("\n".join(LINES))
    result = CliRunner().invoke(app, ["score", str(scoring_model), str(tmp_path / "text.txt")])
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 1 + 5 + 1 and "n = 22 a direction" in result.stdout
    result = CliRunner().invoke(app, ["score", str(scoring_model), str(tmp_path / "text.txt"), "--json"])
    assert len(json.loads(result.stdout)["sentences"]) == 5
