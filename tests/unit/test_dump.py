"""`toolkit embed`: any text, what is kept of it, and going on to the same bits."""

import json
import logging

import h5py
import numpy as np
import pytest

from toolkit.bilm.folder import load_model
from toolkit.config import Embed
from toolkit.embed import dump as library
from toolkit.embed.dump import dump
from toolkit.embed.dumpfile import open_embeddings
from toolkit.embed.dumpwriter import COMPRESS_FROM, DumpWriter
from toolkit.embed.survey import survey
from toolkit.errors import DiskFullError, UsageError

ODD = [
    "a/b . .. /",
    "a\tb  c",
    "",
    "a/b . .. /",
    'say "it\'s" \\n {0}',
    "😀 ünï \u200d",
    "one\x0btwo\x1cthree\x85four\u2028five",
    " \x01\x7f ",
    "",
]


@pytest.fixture(scope="module")
def model(tiny_model):
    return load_model(tiny_model)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{'the bank of a river '[: 4 * (number % 6)]} w{number}\n" for number in range(60)))
    return path


def content(path):
    with h5py.File(path) as file:
        return [(file[name].shape, file[name].dtype, file[name][()].tobytes()) for name in sorted(file)]


def test_odd_characters_part_no_lines_and_name_no_datasets(model, tmp_path):
    file, out = tmp_path / "odd.txt", tmp_path / "odd.h5"
    file.write_bytes("\n".join(ODD).encode() + b"\n")
    document = dump(model, file, out, sentence_to_index=True)
    assert (document["sentences"], document["tokens"]) == (9, sum(len(line.split()) for line in ODD))
    with open_embeddings(out) as read:
        assert [read.n_tokens(number) for number in range(len(read))] == [len(line.split()) for line in ODD]
        np.testing.assert_allclose(read[0], read[3], atol=1e-6)
    with h5py.File(out) as other:
        assert other["sentence_to_index"].shape == (1,)
        table = json.loads(other["sentence_to_index"].asstr()[0])
    assert table == {line.strip(): str(number) for number, line in enumerate(ODD)}


@pytest.mark.parametrize("state", ["warm", "stateful"])
def test_an_interrupted_dump_goes_on_to_the_same_bits(model, text, tmp_path, monkeypatch, state):
    settings = Embed(state=state, batch_tokens=8)
    dump(model, text, tmp_path / "whole.h5", settings)
    out, write = tmp_path / "out.h5", DumpWriter.write

    def interrupted(writer, embeddings):
        if writer.sentences == 45:
            raise KeyboardInterrupt
        write(writer, embeddings)

    with monkeypatch.context() as patch:
        patch.setattr(library, "COMMIT_SECONDS", 0.0)
        patch.setattr(library, "COMMIT_SHARE", 1e9)
        patch.setattr(DumpWriter, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            dump(model, text, out, settings)
    assert not out.exists()
    with pytest.raises(UsageError, match="go on with --resume"):
        dump(model, text, out, settings)
    with pytest.raises(UsageError, match=r"its state is .* here it would be 'zero'"):
        dump(model, text, out, Embed(state="zero", batch_tokens=8), resume=True)
    document = dump(model, text, out, settings, resume=True)
    assert 20 < document["resumed_at"] <= 45
    assert content(out) == content(tmp_path / "whole.h5")
    assert dump(model, text, out, settings, resume=True)["resumed_at"] == 60
    text.write_text(text.read_text() + "more\n")
    with pytest.raises(UsageError, match="its text_fingerprint is"):
        dump(model, text, out, settings, resume=True)


def test_long_sentences_are_compressed_and_equal(tmp_path):
    rng = np.random.default_rng(0)
    sentences = [rng.normal(size=(3, tokens, 64)).astype(np.float32) for tokens in (0, 3, 2000)]
    with DumpWriter(tmp_path / "out.h5", {}, compress=True) as writer:
        for sentence in sentences:
            writer.write(sentence)
    assert sentences[1].nbytes < COMPRESS_FROM < sentences[2].nbytes
    with h5py.File(tmp_path / "out.h5") as file:
        assert [file[name].compression for name in "012"] == [None, None, "gzip"]
        assert file["2"].shuffle and file["2"].id.get_storage_size() < 0.95 * sentences[2].nbytes
        assert all(np.array_equal(file[str(number)][()], sentence) for number, sentence in enumerate(sentences))


def test_the_size_is_told_before_it_starts(model, text, tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        document = dump(model, text, tmp_path / "out.h5")
    assert "60 sentences, " in caplog.text and "tokens: about 0.1 MB" in caplog.text
    assert document["bytes"] == pytest.approx(document["estimated_bytes"], rel=0.2)


def test_a_dump_that_cannot_fit_does_not_start(model, text, tmp_path, monkeypatch):
    monkeypatch.setattr(type(survey(text, None)), "size", lambda *_: 1 << 60)
    with pytest.raises(DiskFullError, match=r"out\.h5: [\d,]+ bytes are needed, [\d,]+ are free"):
        dump(model, text, tmp_path / "out.h5")
    assert [entry.name for entry in tmp_path.iterdir()] == ["text.txt"]
