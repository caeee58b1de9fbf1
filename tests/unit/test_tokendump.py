"""`toolkit embed-tokens`: a row a word, in the published layout, usable in the place of the character CNN."""

import gzip
import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from oracle import Oracle, write_random_model
from typer.testing import CliRunner

from toolkit.bilm.folder import load_model
from toolkit.cli.main import app
from toolkit.embed import tokendump
from toolkit.embed.encoder import Encoder
from toolkit.embed.tokendump import dump_tokens
from toolkit.errors import FormatError, UsageError
from toolkit.inspection import inspect

TOLERANCE = 1e-5


def table(path: Path) -> np.ndarray:
    with h5py.File(path) as file:
        assert set(file) == {"embedding"}
        return file["embedding"][()]


def test_the_golden_table_is_reproduced(shared_data: Path, tmp_path: Path) -> None:
    fixture = shared_data / "bilm-fixtures" / "allennlp"
    document = dump_tokens(load_model(fixture), tmp_path / "tokens.hdf5", fixture / "vocab_test.txt")
    found, expected = table(tmp_path / "tokens.hdf5"), table(fixture / "elmo_token_embeddings.hdf5")
    assert (found.shape, found.dtype) == ((458, 16), np.float32) and document["words"] == 458
    np.testing.assert_allclose(found, expected, atol=2e-6)


def test_row_i_is_line_i_whatever_the_slices(tiny_model: Path, tmp_path: Path, monkeypatch) -> None:
    words = ["</S>", "<S>", "of", "北京", "\u00a0", "of", "🙂", "x" * 200, "a/b", "."]
    (tmp_path / "words.txt").write_bytes("\r\n".join(words).encode())
    oracle = Oracle(tiny_model / "options.json", tiny_model / "weights.hdf5")
    monkeypatch.setattr(tokendump, "SLICE", 3)
    document = dump_tokens(load_model(tiny_model), tmp_path / "a.hdf5", tmp_path / "words.txt")
    found = table(tmp_path / "a.hdf5")
    np.testing.assert_allclose(found, [oracle.token(word) for word in words], atol=TOLERANCE)
    np.testing.assert_array_equal(found[2], found[5])
    assert (document["words"], document["width"], document["duplicates"], document["unknown"]) == (10, 8, 1, None)
    (tmp_path / "words.txt.gz").write_bytes(gzip.compress("\n".join(words).encode()))
    again = dump_tokens(load_model(tiny_model), tmp_path / "b.hdf5", tmp_path / "words.txt.gz")
    assert again["vocabulary_sha256"] == document["vocabulary_sha256"]
    np.testing.assert_array_equal(table(tmp_path / "b.hdf5"), found)


def test_the_models_own_words_are_the_default(tiny_model: Path, tmp_path: Path) -> None:
    model = load_model(tiny_model)
    dump_tokens(model, tmp_path / "own.hdf5")
    expected = Encoder(model).token_vectors(model.vocabulary.words)
    np.testing.assert_allclose(table(tmp_path / "own.hdf5"), expected, atol=TOLERANCE)
    bare = load_model(write_random_model(tmp_path / "bare", seed=1))
    with pytest.raises(UsageError, match="no vocabulary of its own: name the words with --vocabulary"):
        dump_tokens(bare, tmp_path / "bare.hdf5")


def test_the_table_stands_for_the_characters_of_its_model(tiny_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "words"
    folder.mkdir()
    for name in ("weights.hdf5", "vocab.txt"):
        (folder / name).write_bytes((tiny_model / name).read_bytes())
    options = json.loads((tiny_model / "options.json").read_text())
    (folder / "options.json").write_text(json.dumps({"lstm": options["lstm"]}))
    dump_tokens(load_model(tiny_model), folder / "tokens.hdf5")
    sentences = [["the", "bank", "."], ["spring"]]
    # From zero: the warm state's own sentence holds words that this small table lacks.
    table_only, characters = (Encoder(load_model(path), "zero") for path in (folder, tiny_model))
    for left, right in zip(table_only.encode(sentences), characters.encode(sentences), strict=True):
        np.testing.assert_allclose(left, right, atol=TOLERANCE)


def test_a_model_of_words_says_how_many_it_lacks(tmp_path: Path) -> None:
    model = load_model(write_random_model(tmp_path / "m", 5, ("the",), reads_words=True))
    (tmp_path / "words.txt").write_text("the\nstrange\n<UNK>\nodd\n")
    assert dump_tokens(model, tmp_path / "t.hdf5", tmp_path / "words.txt")["unknown"] == 2
    found = table(tmp_path / "t.hdf5")
    np.testing.assert_array_equal(found[1], found[2])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a\n\nb\n", "line 2 is blank"),
        (b"", "line 1 is blank"),
        (b"a\n\xff\n", "line 2: byte 0xff is not UTF-8"),
        (None, "is missing"),
    ],
)
def test_a_list_that_readers_count_differently_is_refused(tiny_model: Path, tmp_path: Path, data, message) -> None:
    if data is not None:
        (tmp_path / "words.txt").write_bytes(data)
    with pytest.raises(FormatError, match=f"words.txt.*{message}"):
        dump_tokens(load_model(tiny_model), tmp_path / "t.hdf5", tmp_path / "words.txt")
    assert not (tmp_path / "t.hdf5").exists()


def test_a_line_that_published_readers_skip_takes_no_row(tiny_model: Path, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("the\n!!!MAXTERMID\nof\n")
    assert dump_tokens(load_model(tiny_model), tmp_path / "t.hdf5", tmp_path / "words.txt")["words"] == 2


def test_the_command_writes_once_and_inspect_knows_the_file(tiny_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "t.hdf5"
    result = CliRunner().invoke(app, ["embed-tokens", str(tiny_model), "-o", str(out)])
    assert result.exit_code == 0 and "17 words of 8 numbers" in result.stdout
    before = out.read_bytes()
    result = CliRunner().invoke(app, ["embed-tokens", str(tiny_model), "-o", str(out), "--json"])
    assert (result.exit_code, result.stdout) == (2, "") and "exists already" in result.stderr
    assert out.read_bytes() == before
    found = inspect(str(out), tmp_path)
    assert (found["kind"], found["words"], found["width"], found["dtype"]) == ("token table", 17, 8, "float32")
    assert found["attributes"]["model_fingerprint"] == load_model(tiny_model).fingerprint
