import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from toolkit.cli.main import app
from toolkit.config import resolve
from toolkit.errors import FormatError, UsageError
from toolkit.text.prepare import prepare
from toolkit.text.vocab import BOS, EOS, UNK, Vocabulary
from toolkit.text.vocabbuild import build
from toolkit.text.vocabcheck import check

START = b"<S>\n</S>\n<UNK>\n"
WORDS = [f"w{i}" for i in range(60)]


@pytest.fixture
def settings(tmp_path):
    def with_(**options):
        values = {"paths.cache": tmp_path / "cache", "text.processes": 1, "pretrain.valid_fraction": 0.2}
        values |= {key.replace("__", "."): value for key, value in options.items()}
        return resolve(options=values, environment={}).settings

    return with_


@pytest.fixture
def corpus(tmp_path):
    """Return a tokenised text whose words are of very different frequency."""
    source = random.Random(3)
    weights = [1 / (i + 1) for i in range(len(WORDS))]
    lines = [" ".join([*source.choices(WORDS, weights, k=12), ","]) + " ." for _ in range(400)]
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def checked(tmp_path, settings, data: bytes, corpus=()):
    path = tmp_path / "vocab.txt"
    path.write_bytes(data)
    return check(path, corpus, settings())


def kinds(document):
    return {problem["kind"]: problem["total"] for problem in document["problems"]}


def places(document, kind):
    (problem,) = (problem for problem in document["problems"] if problem["kind"] == kind)
    return [example["line"] for example in problem["examples"]]


# --- build ---


@pytest.mark.parametrize("text", ["tokenised", "raw"])
def test_the_file_is_the_vocabulary_that_pretraining_would_make(tmp_path, settings, corpus, text):
    if text == "raw":
        corpus.write_text(corpus.read_text().replace(" ,", ",").replace(" .", "."))
    chosen = settings(vocabulary__size=40, vocabulary__min_count=3)
    document = build([corpus], None, chosen, tmp_path / "v.txt")
    prepared = prepare([corpus], None, chosen.text, chosen.pretrain.valid_fraction, chosen.paths.cache)
    expected = Vocabulary.from_counts(prepared.words, prepared.counts, 40, 3)
    assert (tmp_path / "v.txt").read_text() == "".join(f"{word}\n" for word in expected.words)
    assert Vocabulary.load(tmp_path / "v.txt").words[:3] == [BOS, EOS, UNK]
    assert (document["words"], document["input"], document["corpus"]) == (40, text, prepared.fingerprint)


def test_coverage_equals_a_plain_count(tmp_path, settings, corpus):
    chosen = settings(vocabulary__size=20)
    document = build([corpus], None, chosen, tmp_path / "v.txt")
    prepared = prepare([corpus], None, chosen.text, chosen.pretrain.valid_fraction, chosen.paths.cache)
    words = set(Vocabulary.load(tmp_path / "v.txt").words)
    for split, stream in (("train", prepared.train), ("valid", prepared.valid)):
        tokens = [prepared.words[i] for i in stream.tokens]
        share = sum(token in words for token in tokens) / len(tokens)
        assert document["coverage"][split] == pytest.approx(share, abs=1e-6)
        assert 0 < share < 1
    assert [row["size"] for row in document["sizes"]] == [20, 1000]
    assert document["sizes"][1]["train"] == 1.0


def test_every_word_that_is_left_out_is_accounted_for(tmp_path, settings, corpus):
    with corpus.open("a") as file:
        file.write("once , <UNK> <S> !!!MAXTERMID .\n" * 30)
    chosen = settings(vocabulary__size=30, vocabulary__min_count=25)
    document = build([corpus], None, chosen, tmp_path / "v.txt")
    prepared = prepare([corpus], None, chosen.text, chosen.pretrain.valid_fraction, chosen.paths.cache)
    left = document["left_out"]
    assert document["distinct_words"] == document["words"] - 3 + left["rare"] + left["size"] + len(left["reserved"])
    assert sorted(left["reserved"]) == ["!!!MAXTERMID", "<S>", "<UNK>"]
    words = [word for word in prepared.words if word not in left["reserved"]]
    rare = sum(0 < prepared.counts[prepared.words.index(word)] < 25 for word in words)
    assert left["rare"] == rare > 0 and left["size"] > 0
    assert check(tmp_path / "v.txt", [], settings())["problems"] == []


def test_a_text_with_the_line_that_readers_skip_does_not_shift_ids(tmp_path):
    vocabulary = Vocabulary.from_counts(["!!!MAXTERMID", UNK, BOS, EOS, "a", "b"], [9, 8, 7, 6, 5, 4], 5, 1)
    vocabulary.save(tmp_path / "v.txt")
    assert Vocabulary.load(tmp_path / "v.txt").words == vocabulary.words == [BOS, EOS, UNK, "a", "b"]


def test_an_existing_file_is_kept_and_nothing_is_prepared(tmp_path, settings, corpus):
    (tmp_path / "v.txt").write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        build([corpus], None, settings(), tmp_path / "v.txt")
    assert (tmp_path / "v.txt").read_text() == "mine"
    assert not (tmp_path / "cache").exists()


def test_nothing_is_written_when_no_word_is_frequent_enough(tmp_path, settings, corpus):
    with pytest.raises(UsageError, match="min_count"):
        build([corpus], None, settings(vocabulary__min_count=10**6), tmp_path / "v.txt")
    assert not (tmp_path / "v.txt").exists()


# --- check ---


def test_a_built_vocabulary_has_no_problems_with_its_corpus(tmp_path, settings, corpus):
    built = build([corpus], None, settings(vocabulary__size=40), tmp_path / "v.txt")
    document = check(tmp_path / "v.txt", [str(corpus)], settings())
    assert (document["errors"], document["warnings"], document["problems"]) == (0, 0, [])
    fit = document["corpus"]
    assert fit["in_order"] and fit["rank_correlation"] == 1.0 and fit["absent"] == 0
    assert fit["coverage"] == built["coverage"] and fit["fingerprint"] == built["corpus"]


def test_words_out_of_frequency_order_are_listed(tmp_path, settings, corpus):
    build([corpus], None, settings(vocabulary__size=40), tmp_path / "v.txt")
    words = (tmp_path / "v.txt").read_text().split("\n")[:-1]
    words[4], words[20] = words[20], words[4]
    document = checked(tmp_path, settings, ("\n".join([*words, "zebra"]) + "\n").encode(), [str(corpus)])
    assert not document["corpus"]["in_order"] and document["corpus"]["rank_correlation"] < 1
    assert 5 in places(document, "order")
    assert (document["corpus"]["absent"], document["errors"]) == (1, 0)
    backwards = "\n".join([*words[:3], *words[:2:-1]]) + "\n"
    assert checked(tmp_path, settings, backwards.encode(), [str(corpus)])["corpus"]["rank_correlation"] < -0.8


@pytest.mark.parametrize(
    ("data", "kind", "line"),
    [
        (START + b"a\nb\na\n", "duplicate", 6),
        (START + b"a\n\nb\n", "blank line", 5),
        (START + b"a\n \t\nb\n", "blank line", 5),
        (b"<S>\n</S>\na\n", "special", 3),
        (b"", "blank line", 1),
        (START + b"a\ncaf\xe9\n", "encoding", 5),
        (b"\xef\xbb\xbf" + START + b"a\n", "bom", 1),
        ("<S>\n</S>\n<UNK>\na\n".encode("utf-16"), "kind", 1),
        (START + b"a\n\x89HDF\0", "kind", 5),
    ],
)
def test_what_training_refuses_is_an_error_with_its_line(tmp_path, settings, data, kind, line):
    document = checked(tmp_path, settings, data)
    assert document["errors"] >= 1 and line in places(document, kind)
    with pytest.raises(FormatError):
        Vocabulary.load(tmp_path / "vocab.txt")


@pytest.mark.parametrize(
    ("data", "kind", "line"),
    [
        (b"</S>\n<S>\n<UNK>\na\n", "special order", 1),
        (b"<S>\r\n</S>\r\n<UNK>\r\na\r\n", "crlf", 1),
        (START + b"the\t17\n", "several", 4),
        (START + b"new york\n", "several", 4),
        (START + "so\u00adft\n".encode(), "invisible", 4),
        (START + "\u00a0\n".encode(), "blank", 4),
        (START + b"a\x07\n", "control", 4),
        (START + "\ufffd\n".encode(), "replacement", 4),
        (START + "b\u0430nk\n".encode(), "look-alike", 4),
        (START + "cop\n\u0441\u043e\u0440\n".encode(), "twin", 5),
        (START + "\ufb01eld\n".encode(), "letter form", 4),
        (START + "cafe\u0301\n".encode(), "nfc", 4),
        (START + "cafÃ©\n".encode(), "mojibake", 4),
        (START + "\ue001\n".encode(), "private", 4),
    ],
)
def test_what_training_takes_as_it_is_is_a_warning_with_its_line(tmp_path, settings, data, kind, line):
    document = checked(tmp_path, settings, data)
    assert (document["errors"], list(kinds(document))) == (0, [kind])
    assert line in places(document, kind)
    Vocabulary.load(tmp_path / "vocab.txt")


def test_a_carriage_return_inside_a_line_is_an_error_since_other_readers_count_another_line(tmp_path, settings):
    document = checked(tmp_path, settings, START + b"a\rb\n")
    assert kinds(document) == {"return": 1} and document["errors"] == 1


def test_every_bad_byte_is_counted_with_line_and_column_and_few_are_listed(tmp_path, settings):
    document = checked(tmp_path, settings, START + b"ab\xe9\xff\n" * 1 + b"".join(b"w%d\xe9\n" % i for i in range(30)))
    (problem,) = document["problems"]
    assert problem["total"] == 32 and len(problem["examples"]) == 5
    assert problem["examples"][0] == {"line": 4, "column": 3, "detail": r"byte 0xe9 in 'ab\udce9\udcff'"}


@given(st.lists(st.binary(max_size=8), max_size=12))
def test_errors_stand_exactly_where_loading_fails(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    data = START + b"\n".join(line.replace(b"\n", b"").replace(b"\r", b"").replace(b"\0", b"") for line in lines)
    path.write_bytes(data)
    document = check(path, [], resolve(environment={}).settings)
    try:
        vocabulary = Vocabulary.load(path)
    except FormatError:
        assert document["errors"] > 0
    else:
        assert document["errors"] == 0 and document["words"] == len(vocabulary)
    json.dumps(document, ensure_ascii=False).encode("utf-8")


def test_the_command_leaves_with_1_for_errors_0_for_warnings_and_2_for_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.txt").write_bytes(START + b"a\na\n")
    (tmp_path / "odd.txt").write_bytes(START + "so\u00adft\n".encode())
    answers = {name: CliRunner().invoke(app, ["vocab", "check", name]) for name in ("bad.txt", "odd.txt", "gone.txt")}
    assert [answer.exit_code for answer in answers.values()] == [1, 0, 2]
    assert "line 5: 'a' stands on line 4 already" in answers["bad.txt"].stdout
    assert "U+00AD SOFT HYPHEN" in answers["odd.txt"].stdout
    assert "bad.txt" in answers["gone.txt"].stderr
    as_json = CliRunner().invoke(app, ["vocab", "check", "bad.txt", "--json"])
    assert as_json.exit_code == 1 and json.loads(as_json.stdout)["errors"] == 1
