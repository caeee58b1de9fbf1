import gzip
import json
import lzma
import random
import statistics
import tracemalloc
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from toolkit.cli.main import app
from toolkit.config import resolve
from toolkit.errors import UsageError
from toolkit.text import workers
from toolkit.text.corpuscheck import check
from toolkit.text.linecount import LineCounter
from toolkit.text.prepare import prepare


def settings(**options):
    values = {"text.processes": 1} | {key.replace("__", "."): value for key, value in options.items()}
    return resolve(options=values, environment={}).settings


def checked(tmp_path, data: bytes, name="corpus.txt", **options):
    (tmp_path / name).write_bytes(data)
    return check([tmp_path / name], settings(**options))


def found(document, kind):
    (problem,) = (problem for problem in document["problems"] if problem["kind"] == kind)
    return problem


def place(document, kind):
    example = found(document, kind)["examples"][0]
    return example.get("line"), example.get("column")


# --- lines ---


def counted(files: list[bytes], limit: int = 10**6) -> dict:
    counter = LineCounter()
    for data in files:
        for line in data.splitlines(keepends=True):
            for begin in range(0, len(line), limit):
                piece = line[begin : begin + limit]
                counter.add(piece, len(piece.rstrip(b"\n")), piece.endswith(b"\n"))
        counter.end_file()
    return counter.document([f"file {i}" for i in range(len(files))])


LINES = st.lists(st.binary(max_size=9).map(lambda b: b.replace(b"\n", b"").replace(b"\r", b"")), max_size=30)


@given(st.lists(LINES, min_size=1, max_size=3), st.booleans(), st.integers(1, 12))
def test_lines_are_counted_as_by_hand_whatever_the_pieces(files, ended, limit):
    data = [b"".join(line + b"\n" for line in lines) for lines in files]
    lines = [line for file in data for line in file.split(b"\n")[:-1]]
    if not ended:
        data[-1] = data[-1].removesuffix(b"\n")
        if lines and not lines[-1] and files[-1]:
            lines.pop()
    document = counted(data, limit)
    texts = [line for line in lines if line.strip()]
    assert (document["total"], document["blank"]) == (len(lines), len(lines) - len(texts))
    assert document["duplicate"] == len(texts) - len({line.strip() for line in texts})
    lengths = sorted(map(len, texts))
    if lengths:
        assert document["characters"]["median"] == statistics.median_low(lengths)
        assert document["characters"]["longest"]["characters"] == lengths[-1]
    else:
        assert document["characters"]["longest"] is None


def test_the_most_repeated_lines_are_named_where_they_stand_first():
    document = counted([b"x\n\na\nb\na\n", b"c\nb\na\n c \nb\n"])
    found = [(row["times"], row["file"], row["line"]) for row in document["most_repeated"]]
    assert sorted(found[:2]) == [(3, "file 0", 3), (3, "file 0", 4)]  # equal ones in any order
    assert found[2] == (2, "file 1", 1)
    assert document["duplicate"] == 5


def test_the_99th_percentile_and_the_first_longest_line():
    document = counted([b"".join(b"x" * n + b"\n" for n in range(1, 101)), b"y" * 100 + b"\n"])
    assert document["characters"]["percentile_99"] == 100
    assert document["characters"]["longest"] == {"characters": 100, "file": "file 0", "line": 100}
    assert counted([b"".join(b"x" * n + b"\n" for n in range(1, 101))])["characters"]["percentile_99"] == 99


# --- corpus ---


def test_figures_equal_those_of_the_prepared_corpus(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "CHUNK", 3000)  # several chunks
    source = random.Random(5)
    words = [f"word{i}" for i in range(300)]
    lines = [" ".join(source.choices(words, k=9)).capitalize() + ", so it is. And more." for _ in range(200)]
    for part in (0, 1):
        (tmp_path / f"part{part}.txt").write_text("\n\n".join(lines[part::2]))
    document = check([tmp_path], settings())
    chosen = settings(paths__cache=tmp_path / "cache")
    prepared = prepare([tmp_path], None, chosen.text, 0.2, tmp_path / "cache")
    assert document["tokens"] == prepared.train.n_tokens + prepared.valid.n_tokens
    assert document["sentences"] == prepared.train.n_sentences + prepared.valid.n_sentences
    assert document["distinct_words"] == len(prepared.words)
    assert [file["tokens"] for file in document["files"]] == [f["tokens"] for f in prepared.description["files"]]
    assert (document["lines"]["text"], document["lines"]["blank"]) == (200, 198)
    assert [file["lines"] for file in document["files"]] == [199, 199]
    assert (document["errors"], document["warnings"]) == (0, 0)


def test_figures_do_not_depend_on_the_number_of_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "CHUNK", 5000)
    text = "\n".join(f"Sentence number {i} costs {i * i} so\u00adft b\u0430nks, does it not?" for i in range(400))
    one = checked(tmp_path, text.encode())
    two = checked(tmp_path, text.encode(), text__processes=2)
    for document in (one, two):
        del document["seconds"], document["peak_memory_mb"]
    assert one == two and one["warnings"] == 800


def test_out_of_vocabulary_shares_equal_a_plain_count(tmp_path):
    source = random.Random(7)
    words = [f"w{i}" for i in range(3000)]
    tokens = source.choices(words, [1 / (i + 1) for i in range(3000)], k=20_000)
    text = "\n".join(" ".join(tokens[i : i + 20]) + " <UNK> , ." for i in range(0, len(tokens), 20))
    document = checked(tmp_path, text.encode(), vocabulary__size=50)
    counts = Counter(text.split())
    del counts["<UNK>"]
    for row in document["out_of_vocabulary"]:
        inside = sum(count for _, count in counts.most_common(row["size"] - 3))
        assert row["share"] == pytest.approx(1 - inside / len(text.split()), abs=1e-6)
    assert [row["size"] for row in document["out_of_vocabulary"]] == [50, 1000, 5000]


@pytest.mark.parametrize(
    ("line", "kind", "total", "column"),
    [
        ("so\u00adft and so\u00adft", "invisible", 2, 3),
        ("a\u00a0b", "blank", 1, 2),
        ("a\x07b", "control", 1, 2),
        ("what \ufffd\ufffd is", "replacement", 2, 6),
        ("x \ue000", "private", 1, 3),
        ("a cafÃ© and â€œso", "mojibake", 2, 6),
        ("Tom &amp; Jerry &#39;s", "escape", 2, 5),
        ("so<br /><br />good", "markup", 2, 3),
        ("the b\u0430nk", "look-alike", 1, None),
        ("the \ufb01eld", "letter form", 1, None),
        ("a cafe\u0301 cafe\u0301", "nfc", 1, 6),
        ("see " + "x" * 60, "long", 1, None),
    ],
)
def test_trouble_is_counted_with_its_place_and_does_not_stop_training(tmp_path, line, kind, total, column):
    document = checked(tmp_path, f"A plain line, first.\n\n{line}\nAnd a last one, so.\n".encode())
    assert [(p["kind"], p["total"]) for p in document["problems"] if p["kind"] != "long" or kind == "long"] == [
        (kind, total)
    ]
    assert place(document, kind) == (3, column)
    assert document["errors"] == 0


@pytest.mark.parametrize("line", ["a\tb", "3 < 4 and 5 > 2", "AT&T; R&D", "the <unk> said <s>", "μm of αB, naïve"])
def test_ordinary_text_is_no_trouble(tmp_path, line):
    assert checked(tmp_path, f"A line, first.\n{line}\n".encode())["problems"] == []


def test_tokens_are_counted_each_time_they_occur_and_placed_where_first(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "CHUNK", 50)
    text = "A line, to begin.\n" * 5 + "The b\u0430nk, here.\n" * 7 + "Two b\u0430nk b\u0430nk, there.\n"
    document = checked(tmp_path, text.encode())
    assert found(document, "look-alike")["total"] == 9 and place(document, "look-alike") == (6, None)


def test_a_lower_cased_token_is_found_in_its_line(tmp_path):
    document = checked(tmp_path, "First, this.\nThen B\u0430NK, that.\n".encode(), text__lowercase=True)
    assert place(document, "look-alike") == (2, None)


def test_every_byte_that_is_not_utf8_is_counted_with_line_and_column(tmp_path):
    text = "Plain, first.\nDas schöne Café, so.\n" * 4
    document = checked(tmp_path, text.encode("latin1"))
    problem = found(document, "encoding")
    assert (problem["severity"], problem["total"], place(document, "encoding")) == ("error", 8, (2, 8))
    assert problem["examples"][0]["detail"] == "byte 0xf6"
    assert document["files"][0]["encoding"] == "not UTF-8"
    assert document["tokens"] > 20
    json.dumps(document, ensure_ascii=False).encode("utf-8")


def test_utf16_is_named_and_the_other_files_are_read(tmp_path):
    (tmp_path / "a.txt").write_bytes("A line, so.\n".encode("utf-16"))
    (tmp_path / "b.txt").write_bytes(b"\xef\xbb\xbfA line, so.\n")
    document = check([tmp_path], settings())
    assert [file["encoding"] for file in document["files"]] == ["UTF-16", "UTF-8 with byte order mark"]
    assert [file["tokens"] > 0 for file in document["files"]] == [False, True]
    assert "utf-16" in found(document, "encoding")["examples"][0]["detail"]
    assert "invisible" not in [problem["kind"] for problem in document["problems"]]


@pytest.mark.parametrize("pack", [(gzip.compress, ".gz"), (lzma.compress, ".xz")])
def test_a_damaged_file_is_an_error_and_the_next_one_is_still_read(tmp_path, pack):
    compress, suffix = pack
    source = random.Random(1)
    text = "".join(f"A line {source.random()}, so.\n" for _ in range(5000)).encode()
    (tmp_path / f"a{suffix}").write_bytes(compress(text)[:-2000])
    (tmp_path / "b.txt").write_bytes(text)
    document = check([tmp_path], settings())
    assert found(document, "damaged")["total"] == document["errors"] == 1
    assert document["files"][1]["lines"] == 5000


def test_an_empty_corpus_is_an_error_and_an_empty_file_a_warning(tmp_path):
    empty = checked(tmp_path, b"\n \n", "empty.txt")
    assert [problem["kind"] for problem in empty["problems"]] == ["nothing", "empty"]
    (tmp_path / "b.txt").write_text("A line, so.\n")
    both = check([tmp_path], settings())
    assert (both["errors"], both["warnings"]) == (0, 1)
    with pytest.raises(UsageError, match="no file matches"):
        check([tmp_path / "gone.txt"], settings())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The same, again.\n" * 9, "repeat an earlier one"),
        ("only small letters, here. and more.\n", "lower-cased"),
        ("".join(f"Line {i:4}, which was wrapped at some width, as books are, so it\n" for i in range(50)), "wrapped"),
        ("A word, and another, " * 9000 + "\n", "paragraph"),
        ("".join(f"Word{i}, " for i in range(200)), "vocabulary.size"),
    ],
)
def test_figures_lead_to_advice(tmp_path, text, words):
    document = checked(tmp_path, text.encode(), vocabulary__size=20)
    assert any(words in sentence for sentence in document["advice"])


def test_files_that_disagree_about_tokenising_are_pointed_out(tmp_path):
    (tmp_path / "a.txt").write_text("Raw text, so it is.\n")
    (tmp_path / "b.txt").write_text("Tokenised text , so it is .\n")
    document = check([tmp_path], settings())
    assert [file["input"] for file in document["files"]] == ["raw", "tokenised"]
    assert any("1 files look raw and 1 tokenised" in sentence for sentence in document["advice"])


def test_one_endless_line_is_read_in_bounded_memory_and_counted_as_one(tmp_path):
    text = b"word " * 4_000_000  # 20 MB
    (tmp_path / "corpus.txt").write_bytes(text)
    del text
    tracemalloc.start()
    document = check([tmp_path / "corpus.txt"], settings(text__input="tokenised"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6  # two chunks of a million characters as lists of tokens
    lines = document["lines"]
    assert (lines["total"], lines["cut"], lines["characters"]["longest"]["characters"]) == (1, 1, 20_000_000)
    assert document["tokens"] == 4_000_000


def test_the_command_leaves_with_1_for_errors_and_0_for_warnings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.txt").write_bytes(b"A caf\xe9, so.\n")
    (tmp_path / "odd.txt").write_bytes("A so\u00adft one, so.\n".encode())
    answers = [CliRunner().invoke(app, ["corpus", "check", name]) for name in ("bad.txt", "odd.txt", "gone.txt")]
    assert [answer.exit_code for answer in answers] == [1, 0, 2]
    assert "bad.txt, line 1, column 6: byte 0xe9" in answers[0].stdout
    as_json = CliRunner().invoke(app, ["corpus", "check", "bad.txt", "--json"])
    assert as_json.exit_code == 1 and json.loads(as_json.stdout)["errors"] == 1
