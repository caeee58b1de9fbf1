"""Dumps: the published layout, read back lazily, refused with a reason when they are not whole."""

import json
import shutil

import h5py
import numpy as np
import pytest

from toolkit.bilm.folder import load_model
from toolkit.config import Embed
from toolkit.embed.dump import dump
from toolkit.embed.dumpfile import open_embeddings
from toolkit.embed.dumpwriter import DumpWriter, choose_layers
from toolkit.embed.encoder import Encoder
from toolkit.errors import DataError, FormatError, UsageError

LINES = ["the bank of the river", "", "Money in the bank ."]


@pytest.fixture(scope="module")
def model(tiny_model):
    return load_model(tiny_model)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def whole(tmp_path):
    """A dump of three sentences of 3, 0 and 5 tokens."""
    path = tmp_path / "whole.h5"
    rng = np.random.default_rng(1)
    with DumpWriter(path, {"model_fingerprint": "f" * 16, "layers": "all"}) as writer:
        for tokens in (3, 0, 5):
            writer.write(rng.normal(size=(3, tokens, 16)).astype(np.float32))
    return path


def test_a_dump_holds_what_the_encoder_gives_in_the_published_layout(model, text, tmp_path):
    out = tmp_path / "out.h5"
    document = dump(model, text, out)
    expected = list(Encoder(model).encode([line.split() for line in LINES]))
    with h5py.File(out) as file:
        assert sorted(file) == ["0", "1", "2"]
        assert file["1"].shape == (3, 0, 16)
        for number, layers in enumerate(expected):
            assert file[str(number)].dtype == np.float32
            np.testing.assert_allclose(file[str(number)][()], layers, atol=1e-6)
    assert (document["sentences"], document["tokens"], document["layers"]) == (3, 10, "all")
    with open_embeddings(out) as read:
        assert read.attributes["model_fingerprint"] == model.fingerprint
        assert read.attributes["state"] == "warm"


@pytest.mark.parametrize("layers", ["all", "top", "average", "0", "2"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_layers_and_dtype_are_kept_as_asked(model, text, tmp_path, layers, dtype):
    out = tmp_path / "out.h5"
    dump(model, text, out, Embed(layers=layers, dtype=dtype))
    expected = [choose_layers(e, layers) for e in Encoder(model).encode([line.split() for line in LINES])]
    with open_embeddings(out) as read:
        assert len(read) == 3
        for got, want in zip(read, expected, strict=True):
            assert got.dtype == dtype
            np.testing.assert_allclose(got, want, atol=1e-5 if dtype == "float32" else 2e-3)


def test_average_is_the_unweighted_mean_of_the_layers():
    embeddings = np.random.default_rng(0).normal(size=(3, 4, 6))
    np.testing.assert_allclose(choose_layers(embeddings, "average"), sum(embeddings) / 3)


def test_sentences_and_layers_are_read_by_index(whole):
    with open_embeddings(whole) as read:
        assert len(read) == 3
        assert (read.n_layers, read.width) == (3, 16)
        np.testing.assert_array_equal(read[-1], read[2])
        np.testing.assert_array_equal(read.layer(2, 1), read[2][1])
        with pytest.raises(IndexError):
            read[3]
        with pytest.raises(UsageError, match="has no layer 3"):
            read.layer(0, 3)


def test_an_error_while_writing_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), DumpWriter(tmp_path / "out.h5", {}) as writer:
        writer.write(np.zeros((3, 2, 4), np.float32))
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_bad_text_leaves_nothing(model, tmp_path):
    empty, latin = tmp_path / "empty.txt", tmp_path / "latin.txt"
    empty.touch()
    latin.write_bytes(b"the bank\nof the r\xe9union\n")
    with pytest.raises(DataError, match=r"empty\.txt is empty"):
        dump(model, empty, tmp_path / "out.h5")
    with pytest.raises(DataError, match=r"latin\.txt, line 2, column 9"):
        dump(model, latin, tmp_path / "out.h5")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.txt", "latin.txt"]


def test_an_existing_file_is_not_overwritten(model, text, tmp_path):
    out = tmp_path / "out.h5"
    out.write_text("mine")
    with pytest.raises(UsageError, match="exists already: remove it"):
        dump(model, text, out)
    assert out.read_text() == "mine"


def test_a_layer_that_the_model_lacks_is_refused(model, text, tmp_path):
    with pytest.raises(UsageError, match=r"no layers '3'.*0 to 2"):
        dump(model, text, tmp_path / "out.h5", Embed(layers="3"))


def test_dumps_of_other_makers_are_read(tmp_path):
    path = tmp_path / "allennlp.h5"
    with h5py.File(path, "w") as file:
        for number in range(12):
            file[str(number)] = np.full((3, 2, 4), number, np.float32)
        file.create_dataset("sentence_to_index", (1,), dtype=h5py.string_dtype())[0] = json.dumps({"a b": "0"})
    with open_embeddings(path) as read:
        assert [int(sentence[0, 0, 0]) for sentence in read] == list(range(12))
        assert read.attributes == {}


def test_unfinished_dumps_are_refused(whole):
    with h5py.File(whole, "r+") as file:
        del file.attrs["complete"]
    with pytest.raises(FormatError, match=r"unfinished \(3 sentences\)"):
        open_embeddings(whole)


def test_dumps_that_lack_a_sentence_are_refused(whole):
    with h5py.File(whole, "r+") as file:
        del file["2"]
    with pytest.raises(FormatError, match="holds 2 sentences and promises 3"):
        open_embeddings(whole)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 0.95])
def test_dumps_that_were_cut_short_are_refused(whole, share):
    data = whole.read_bytes()
    whole.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(FormatError, match=str(whole)):
        open_embeddings(whole)


def test_damaged_bytes_never_give_another_kind_of_error(whole, tmp_path):
    data, copy = whole.read_bytes(), tmp_path / "copy.h5"
    rng = np.random.default_rng(5)
    refused = 0
    for _ in range(150):
        damaged = bytearray(data)
        place = int(rng.integers(0, 4096))
        damaged[place : place + 16] = rng.bytes(16)
        copy.write_bytes(damaged)
        try:
            with open_embeddings(copy) as read:
                list(read)
        except FormatError:
            refused += 1
    assert refused > 10


def test_other_files_are_refused_with_the_reason(tmp_path, tiny_model):
    with pytest.raises(FormatError, match="no dump at"):
        open_embeddings(tmp_path / "none.h5")
    text = tmp_path / "text.h5"
    text.write_text("not HDF5 at all")
    with pytest.raises(FormatError, match="not a readable HDF5 file"):
        open_embeddings(text)
    weights = shutil.copy(tiny_model / "weights.hdf5", tmp_path)
    with pytest.raises(FormatError, match="is no dump, it holds 'CNN'"):
        open_embeddings(weights)


def test_a_dump_of_another_model_or_text_is_refused_with_both_values(whole):
    with open_embeddings(whole, model_fingerprint="f" * 16) as read:
        assert len(read) == 3
    with pytest.raises(FormatError, match=f"is of the model {'f' * 16}, expected {'0' * 16}"):
        open_embeddings(whole, model_fingerprint="0" * 16)
    with pytest.raises(FormatError, match=f"does not say of which text it is.*expected {'0' * 16}"):
        open_embeddings(whole, text_fingerprint="0" * 16)


def test_a_sentence_that_is_missing_behind_equal_counts_is_told_when_it_is_read(whole):
    with h5py.File(whole, "r+") as file:
        file.move("1", "one")
    with open_embeddings(whole) as read:
        assert read[0].shape == (3, 3, 16)
        with pytest.raises(FormatError, match="lacks sentence 1 of 3"):
            list(read)


def test_one_layer_is_iterated_alone(whole):
    with open_embeddings(whole) as read:
        for number, layer in enumerate(read.iterate(layer=1)):
            np.testing.assert_array_equal(layer, read[number][1])
        assert [read.n_tokens(number) for number in range(3)] == [3, 0, 5]


def test_a_dump_in_parts_is_read_by_its_links_and_a_lost_part_is_named(whole, tmp_path):
    joined = tmp_path / "joined.h5"
    shutil.copy(whole, tmp_path / "part-1.h5")
    with h5py.File(joined, "w") as file:
        for number in range(6):
            file[str(number)] = h5py.ExternalLink(f"part-{number // 3}.h5", f"/{number % 3}")
        file.attrs.update({"format": "elmo-toolkit dump 1", "complete": True, "sentences": 6})
    whole.rename(tmp_path / "part-0.h5")
    with open_embeddings(joined) as read:
        np.testing.assert_array_equal(read[5], read[2])
        assert len(list(read.iterate(0))) == 6
    (tmp_path / "part-1.h5").unlink()
    with open_embeddings(joined) as read, pytest.raises(FormatError, match=r"sentence 3 should lie in part-1\.h5"):
        list(read)


def test_opening_does_not_list_the_sentences(whole, monkeypatch):
    def listed(self: h5py.Group) -> None:
        raise AssertionError("all names were listed")

    monkeypatch.setattr(h5py.Group, "__iter__", listed)
    with open_embeddings(whole) as read:
        assert len(read) == 3
