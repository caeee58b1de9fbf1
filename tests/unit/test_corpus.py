import bz2
import gzip
import logging
import lzma
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.errors import DataError, UsageError
from toolkit.text.corpus import lines, resolve, split_roles

PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b.txt", "a.txt.xz", "deep/c.gz", "deep/d.tsv.xz", "stats.json", "SOURCE.txt", ".hidden.txt"):
        path = tmp_path / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    return tmp_path


def names(files):
    return [file.name for file in files]


def test_a_folder_gives_its_text_files_in_order_and_nothing_else(folder, caplog):
    caplog.set_level(logging.INFO)
    assert names(resolve(["corpus"])) == ["a.txt.xz", "b.txt", "c.gz"]
    assert "SOURCE.txt is left out" in caplog.text


def test_a_named_file_is_taken_whatever_it_is_called(folder):
    assert names(resolve(["corpus/SOURCE.txt", "corpus/stats.json"])) == ["SOURCE.txt", "stats.json"]


@pytest.mark.parametrize("pattern", ["corpus/*.txt", "'corpus/*.txt'", '"corpus/b.txt"', "./corpus/b.txt"])
def test_globs_and_quotes_are_understood(folder, pattern):
    assert names(resolve([pattern])) == ["b.txt"]


def test_a_glob_that_matches_a_folder_takes_its_text(folder):
    assert names(resolve(["corp*"])) == ["a.txt.xz", "b.txt", "c.gz"]


def test_a_glob_over_folders_reaches_the_deep_file_once(folder):
    assert names(resolve(["corpus/**/*.gz"])) == ["c.gz"]
    assert names(resolve(["corpus/**"])).count("c.gz") == 1


def test_a_file_with_wildcard_characters_in_its_name_is_itself(folder):
    (folder / "a[1].txt").write_bytes(b"")
    assert names(resolve(["a[1].txt"])) == ["a[1].txt"]


def test_a_file_that_is_named_twice_is_read_once(folder):
    assert names(resolve(["corpus/b.txt", "corpus", folder / "corpus" / "b.txt"])) == ["b.txt", "a.txt.xz", "c.gz"]


def test_nothing_matched_names_pattern_working_folder_and_near_misses(folder):
    with pytest.raises(UsageError) as error:
        resolve(["corpsu/x.txt"])
    assert "'corpsu/x.txt'" in str(error.value)
    assert str(folder) in str(error.value)
    assert "corpus" in str(error.value)
    with pytest.raises(UsageError, match=r"there is: b\.txt"):
        resolve(["corpus/bb.txt"])


def test_a_folder_without_text_says_what_it_holds(folder):
    (folder / "news").mkdir()
    (folder / "news" / "news.en-00001-of-00100").write_bytes(b"")
    with pytest.raises(UsageError, match=r"news\.en-00001-of-00100; name them by a glob"):
        resolve(["news"])


@pytest.mark.parametrize("patterns", [[], [""], ["''"]])
def test_an_empty_name_is_no_corpus(folder, patterns):
    with pytest.raises(UsageError, match="no corpus"):
        resolve(patterns)


def test_an_archive_is_refused(folder):
    (folder / "x.tar.gz").write_bytes(b"")
    with pytest.raises(UsageError, match="unpack it"):
        resolve(["x.tar.gz"])


def test_roles_go_by_the_first_word_of_the_name(tmp_path):
    files = [
        tmp_path / name for name in ("train.txt", "valid-00.txt", "Dev.xz", "test_2.gz", "devices.txt", "testament.txt")
    ]
    roles = split_roles(files)
    assert names(roles.train) == ["train.txt", "devices.txt", "testament.txt"]
    assert names(roles.valid) == ["valid-00.txt", "Dev.xz"]
    assert names(roles.test) == ["test_2.gz"]


def test_the_wikipedia_folder_falls_into_its_roles(shared_data):
    roles = split_roles(resolve([shared_data / "pretrain_wiki_en"]))
    assert names(roles.train) == [f"train-{n:02}.txt.xz" for n in range(20)]
    assert names(roles.valid) + names(roles.test) == ["valid.txt.xz", "test.txt.xz"]


@pytest.mark.parametrize("suffix", ["", *PACKERS])
def test_lines_come_decompressed_without_ends_and_without_a_byte_order_mark(tmp_path, suffix):
    path = tmp_path / f"a.txt{suffix}"
    data = "\ufeffEins\r\n\nzwei \u2028 drei\nZuletzt".encode()
    path.write_bytes(PACKERS.get(suffix, bytes)(data))
    assert list(lines(path)) == ["Eins", "", "zwei \u2028 drei", "Zuletzt"]


@pytest.mark.parametrize("limit", [None, 8])
def test_bytes_that_are_not_utf8_are_placed_by_line_and_column_in_characters(tmp_path, limit):
    path = tmp_path / "a.txt"
    path.write_bytes("gut\nüüü üüü üüü caf".encode() + b"\xe9 noir\n")
    with pytest.raises(DataError, match=r"a\.txt, line 2, column 16: byte 0xe9 is not UTF-8; guesses .*'café.*iconv"):
        list(lines(path, limit))


def test_utf16_is_recognised(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("Text".encode("utf-16"))
    with pytest.raises(DataError, match=r"is UTF-16 text.*iconv -f utf-16"):
        list(lines(path))


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("damage", ["truncated", "changed", "not compressed"])
def test_damaged_compressed_files_are_named(tmp_path, suffix, damage):
    path = tmp_path / f"a.txt{suffix}"
    data = PACKERS[suffix](bytes(range(32, 127)) * 50)
    broken = {
        "truncated": data[: len(data) // 2],
        "changed": data[:-20] + bytes(b ^ 0xFF for b in data[-20:]),
        "not compressed": b"plain text\n" * 9,
    }
    path.write_bytes(broken[damage])
    with pytest.raises(DataError, match=rf"a\.txt{suffix} is damaged"):
        list(lines(path))


@settings(deadline=None)
@given(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), st.integers(8, 40))
def test_cutting_long_lines_loses_nothing_and_keeps_the_limit(tmp_path_factory, text, limit):
    path = tmp_path_factory.mktemp("cut") / "a.txt"
    path.write_bytes(text.encode())
    pieces = list(lines(path, limit))
    assert "".join(pieces) == text.removeprefix("\ufeff")
    assert all(len(piece.encode()) <= limit for piece in pieces)


def test_long_lines_are_cut_at_blanks(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"one two three\nfour\n")
    assert list(lines(path, 10)) == ["one two ", "three", "four"]


def test_a_single_line_file_is_read_in_bounded_memory(tmp_path):
    path = tmp_path / "a.txt.xz"
    path.write_bytes(lzma.compress(b"word " * 8_000_000))
    tracemalloc.start()
    total = sum(len(piece) for piece in lines(path, 1 << 16))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == 40_000_000
    assert peak < 12_000_000  # most of it is xz's own window of 8 MiB


@pytest.mark.parametrize("limit", [None, 12])
@pytest.mark.parametrize("suffix", ["", *PACKERS])
def test_lines_that_end_in_carriage_returns_alone_are_lines(tmp_path, suffix, limit):
    path = tmp_path / f"a.txt{suffix}"
    content = b"one two\rthree\r\rfour"
    path.write_bytes(PACKERS[suffix](content) if suffix else content)
    assert list(lines(path, limit)) == ["one two", "three", "", "four"]


def test_a_carriage_return_inside_a_line_that_a_line_feed_ends_is_kept(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\rtwo\nthree\r\n")
    assert list(lines(tmp_path / "a.txt")) == ["one\rtwo", "three"]


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("gbk", "这是一个测试文件，内容不多，但应该够了。"),
        ("cp1251", "Привет мир, это проверка"),
        ("shift_jis", "日本語のテキストです"),
        ("cp949", "안녕하세요 세계"),
    ],
)
def test_the_guesses_at_an_encoding_hold_the_right_one_and_how_it_reads(tmp_path, encoding, text):
    (tmp_path / "a.txt").write_bytes(f"fine line\n{text}\n".encode(encoding))
    with pytest.raises(DataError, match="guesses at its encoding") as error:
        list(lines(tmp_path / "a.txt"))
    assert f"'{text[:12]}" in str(error.value) and "latin1" not in str(error.value)
