"""Neighbours and purity against scikit-learn and by hand; damaged and foreign occurrence files."""

from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.neighbors import NearestNeighbors

from toolkit.errors import FormatError, UsageError
from toolkit.senses.neighbours import Query, load, neighbours, purity_at_k
from toolkit.senses.occurrencefile import save
from toolkit.senses.sources import Occurrence

ATTRIBUTES = {"model_fingerprint": "0123456789abcdef", "state": "warm", "source": "a test"}


def write(path: Path, occurrences: list[Occurrence], vectors: np.ndarray) -> Path:
    save(path, occurrences, enumerate(vectors), vectors.shape[1:], ATTRIBUTES)
    return path


def planted(n: int, words=("bank", "spring"), senses=("a", "b"), seed: int = 3) -> tuple[list[Occurrence], np.ndarray]:
    """Occurrences in sentences of their own; layer 0 is the word's, layer 1 noise, layer 2 sense and noise."""
    rng = np.random.default_rng(seed)
    found, vectors = [], []
    means = rng.normal(size=(len(senses), 12))
    for i in range(n):
        word, sense = words[i % len(words)], i % len(senses) if len(words) == 1 else rng.integers(len(senses))
        found.append(Occurrence(word, 1, senses[sense], ("the", word.title() if i % 3 else word, f"of {i}".split()[1])))
        vectors.append(
            [np.full(12, 1.0 + words.index(word)), rng.normal(size=12), means[sense] + rng.normal(size=12) / 9]
        )
    return found, np.array(vectors, np.float32)


@pytest.fixture
def occurrences(tmp_path: Path):
    return load(write(tmp_path / "occurrences.h5", *planted(60)))


def test_everything_that_was_saved_is_loaded(tmp_path: Path):
    found, vectors = planted(10)
    found[3] = Occurrence("ß½", 0, "Sinn: 意味", ("ß½", "\u2028x", "'\"[`"))
    loaded = load(write(tmp_path / "o.h5", found, vectors))
    assert loaded.words == [o.word for o in found] and loaded.senses == [o.sense for o in found]
    assert [tuple(loaded.tokens(i)) for i in range(10)] == [o.tokens for o in found]
    assert loaded.positions.tolist() == [o.position for o in found]
    assert loaded.vectors.dtype == np.float16 and np.array_equal(loaded.vectors, vectors.astype(np.float16))
    assert loaded.model_fingerprint == ATTRIBUTES["model_fingerprint"] and loaded.n_layers == 3
    assert loaded.counts == {"bank": 5, "spring": 4, "ß½": 1}


@pytest.mark.parametrize("same_word", [True, False])
@pytest.mark.parametrize("layer", [1, 2])
def test_the_ranking_is_that_of_scikit_learn(occurrences, layer: int, same_word: bool):
    for query in (0, 7, 59):
        rows = occurrences.of(occurrences.words[query]) if same_word else np.arange(len(occurrences))
        rows = rows[rows != query]
        x = occurrences.vectors[:, layer].astype(np.float64)
        search = NearestNeighbors(metric="cosine", algorithm="brute").fit(x[rows])
        distances, order = search.kneighbors(x[[query]], n_neighbors=8)
        found = neighbours(occurrences, query, layer, 8, same_word)
        assert [near.index for near in found] == rows[order[0]].tolist()
        np.testing.assert_allclose([near.cosine for near in found], 1 - distances[0], atol=1e-5)


def test_a_free_query_ranks_as_the_same_vectors_in_the_file(occurrences):
    stored = occurrences.query(4)
    free = Query("bank", 0, ("bank", "elsewhere"), "", stored.vectors)
    first, *rest = neighbours(occurrences, free, 2, 6)
    assert first.index == 4 and first.cosine == pytest.approx(1, abs=1e-6)
    assert rest == neighbours(occurrences, 4, 2, 5)


def test_neither_the_query_nor_its_sentence_is_a_neighbour(tmp_path: Path):
    sentence = ("bank", "to", "bank")
    found = [
        Occurrence("bank", 0, "", sentence),
        Occurrence("bank", 2, "", sentence),
        Occurrence("bank", 0, "", ("bank",)),
    ]
    occurrences = load(write(tmp_path / "o.h5", found, np.ones((3, 2, 4), np.float32)))
    assert [near.index for near in neighbours(occurrences, 0, 1, 9)] == [2]
    copy = Query("bank", 0, list(sentence), "", np.ones((2, 4), np.float32))
    assert [near.index for near in neighbours(occurrences, copy, 1, 9)] == [2]


def test_equal_cosines_keep_the_order_of_the_file(occurrences):
    same = [near.index for near in neighbours(occurrences, 0, 0, 50)]
    assert same == sorted(same) and len(same) == 29


@pytest.mark.parametrize("seed", range(6))  # which way the last bit falls depends on the numbers
def test_rounding_errors_do_not_part_equal_vectors(tmp_path: Path, seed: int):
    found = [Occurrence("bank", 0, "", ("bank", str(i))) for i in range(8)]
    vectors = np.tile(np.random.default_rng(seed).normal(size=1024), (8, 1, 1)).astype(np.float32)
    occurrences = load(write(tmp_path / "o.h5", found, vectors))
    assert [near.index for near in neighbours(occurrences, 0, 0, 8)] == list(range(1, 8))


def test_what_does_not_exist_is_refused(occurrences):
    with pytest.raises(UsageError, match=r"no layer 3.*0 to 2"):
        neighbours(occurrences, 0, 3)
    with pytest.raises(UsageError, match="'Bnk': did you mean 'bank'"):
        occurrences.of("Bnk")
    with pytest.raises(UsageError, match="1 or more"):
        purity_at_k(occurrences, "bank", 0)
    with pytest.raises(IndexError):
        neighbours(occurrences, 60, 1)


def test_purity_sees_planted_senses_only_in_the_layer_that_has_them(tmp_path: Path):
    found, vectors = planted(200, words=("bank",), senses=("a", "a", "b"))
    purity = purity_at_k(load(write(tmp_path / "o.h5", found, vectors)), "Bank", 10)
    tokens, noise, sense = purity.layers
    assert sense > 0.99 and abs(noise - purity.chance) < 0.08
    assert tokens == pytest.approx(purity.chance, abs=1e-9)  # all tie: as good as neighbours drawn at random
    assert purity.majority == pytest.approx(134 / 200) and (purity.n, purity.senses, purity.k) == (200, 2, 10)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["", "a", "b", "c"]), min_size=1, max_size=12), st.integers(1, 15), st.integers(0, 99))
def test_purity_is_what_a_plain_loop_counts(tmp_path: Path, senses: list[str], k: int, seed: int):
    found = [Occurrence("w", 0, sense, ("w", str(i))) for i, sense in enumerate(senses)]
    vectors = np.random.default_rng(seed).normal(size=(len(found), 2, 6)).astype(np.float32)
    occurrences = load(write(tmp_path / "o.h5", found, vectors))
    labelled = [i for i, sense in enumerate(senses) if sense]
    purity = purity_at_k(occurrences, "w", k)
    if len(labelled) < 2:
        assert purity is None
        return
    for layer in range(2):
        cosines = cosine_similarity(occurrences.vectors[:, layer].astype(np.float64))
        shares = []
        for i in labelled:
            near = sorted((j for j in labelled if j != i), key=lambda j: -cosines[i, j])[:k]
            shares.append(np.mean([senses[j] == senses[i] for j in near]))
        assert purity.layers[layer] == pytest.approx(np.mean(shares), abs=1e-9)


def test_a_file_that_does_not_exist_is_one_line(tmp_path: Path):
    with pytest.raises(FormatError, match="no occurrences file at"):
        load(tmp_path / "none.h5")


def test_every_cut_of_a_file_is_refused(tmp_path: Path):
    whole = write(tmp_path / "o.h5", *planted(20)).read_bytes()
    for length in range(0, len(whole), 97):
        (tmp_path / "cut.h5").write_bytes(whole[:length])
        with pytest.raises(FormatError, match=r"cut\.h5"):
            load(tmp_path / "cut.h5")


def change(path: Path, name: str, value: object) -> None:
    with h5py.File(path, "a") as file:
        del file[name]
        file[name] = value


DAMAGES = {
    "lengths differ": lambda path: change(path, "positions", np.zeros(3, np.int32)),
    "a position lies beyond": lambda path: change(path, "positions", np.full(20, 3, np.int32)),
    "beyond the 20 sentences": lambda path: change(path, "sentence", np.full(20, 20, np.int32)),
    "not finite": lambda path: change(path, "vectors", np.full((20, 3, 12), np.nan, np.float16)),
    "expected float16": lambda path: change(path, "vectors", np.zeros((20, 3, 12), np.float32)),
    "no integers": lambda path: change(path, "positions", np.ones(20)),
    "damaged": lambda path: change(path, "words", np.zeros(20)),
}


@pytest.mark.parametrize("reason", DAMAGES)
def test_an_inconsistent_file_is_refused_with_the_reason(tmp_path: Path, reason: str):
    path = write(tmp_path / "o.h5", *planted(20))
    DAMAGES[reason](path)
    with pytest.raises(FormatError, match=reason):
        load(path)


def test_foreign_and_unfinished_files_are_refused(tmp_path: Path):
    path = write(tmp_path / "o.h5", *planted(20))
    with h5py.File(path, "a") as file:
        file.attrs["complete"] = False
    with pytest.raises(FormatError, match="unfinished"):
        load(path)
    with h5py.File(path, "a") as file:
        file.attrs["format"] = "elmo-toolkit dump 1"
    with pytest.raises(FormatError, match=r"dump 1.*this toolkit reads"):
        load(path)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["0"] = np.zeros(3)
    with pytest.raises(FormatError, match="does not say its format"):
        load(tmp_path / "other.h5")


def test_an_error_while_writing_leaves_no_file(tmp_path: Path):
    found, vectors = planted(5)
    vectors[3] = 1e6
    with pytest.raises(Exception, match="beyond float16"):
        write(tmp_path / "o.h5", found, vectors)
    assert not list(tmp_path.iterdir())
