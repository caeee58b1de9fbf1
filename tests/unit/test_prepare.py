import json
import logging
import lzma
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolkit.config import Text
from toolkit.errors import DataError, UsageError
from toolkit.text import prepared as prepared_module
from toolkit.text import workers
from toolkit.text.prepare import prepare
from toolkit.text.tokenize import Tokenizer
from toolkit.text.workers import Chunk, Recipe, Source

ONE = Text(processes=1)
PARAGRAPHS = [f"Paragraph {n} is here, with Mr. Smith. It ends after {n % 7} words." for n in range(400)]


@pytest.fixture
def corpus(tmp_path):
    """A folder with 400 raw paragraphs, and the cache's root beside it."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.txt").write_text("\n".join(PARAGRAPHS[:200]), encoding="utf-8")
    (folder / "b.txt.xz").write_bytes(lzma.compress("\n\n".join(PARAGRAPHS[200:]).encode()))
    return folder


def decoded(prepared, split):
    stream = getattr(prepared, split)
    starts = stream.starts
    return [[prepared.words[i] for i in stream.tokens[starts[n] : starts[n + 1]]] for n in range(stream.n_sentences)]


def written(cache):
    return {str(path.relative_to(cache)): path.read_bytes() for path in cache.rglob("*") if path.is_file()}


def test_the_streams_decode_to_the_tokenizers_sentences(corpus, tmp_path):
    prepared = prepare([corpus], None, ONE, 0.1, tmp_path / "cache")
    tokenizer = Tokenizer("en", False, "raw")
    held_out = [workers._falls_into(line, 0.1, 0) for line in PARAGRAPHS]
    for split, wanted in (("train", False), ("valid", True)):
        lines = [line for line, out in zip(PARAGRAPHS, held_out, strict=True) if out is wanted]
        assert decoded(prepared, split) == [tokens for line in lines for tokens in tokenizer.sentences(line)]


def test_a_share_of_the_training_paragraphs_is_lower_cased_and_no_validation_text(corpus, tmp_path):
    as_written = prepare([corpus], None, ONE, 0.1, tmp_path / "cache")
    half = prepare([corpus], None, ONE.model_copy(update={"lowercase_paragraphs": 0.5}), 0.1, tmp_path / "cache")
    assert half.fingerprint != as_written.fingerprint
    assert decoded(half, "valid") == decoded(as_written, "valid")
    kinds = [
        "lower" if ours == [token.lower() for token in theirs] else "as written" if ours == theirs else "mixed"
        for ours, theirs in zip(decoded(half, "train"), decoded(as_written, "train"), strict=True)
    ]
    assert "mixed" not in kinds
    assert 0.4 < kinds.count("lower") / len(kinds) < 0.6
    assert all(first == second for first, second in zip(kinds[::2], kinds[1::2], strict=True))  # whole paragraphs


def test_the_cache_of_version_0_1_is_found_again(corpus, tmp_path):
    """A setting that is not used leaves the fingerprint as it was, and with it the runs that name it."""
    found = prepare([corpus], None, ONE, 0.1, tmp_path / "cache")
    assert found.description["settings"] == {"language": "en", "lowercase": False}


def test_words_go_by_their_frequency_in_train(corpus, tmp_path):
    prepared = prepare([corpus], None, ONE, 0.1, tmp_path / "cache")
    assert prepared.counts.dtype == np.int64
    assert list(prepared.counts) == sorted(prepared.counts, reverse=True)
    assert np.array_equal(np.bincount(prepared.train.tokens, minlength=len(prepared.words)), prepared.counts)
    only_valid = set(prepared.valid.tokens.tolist()) - set(prepared.train.tokens.tolist())
    assert only_valid == set(np.flatnonzero(prepared.counts == 0).tolist()) != set()


def test_equally_frequent_words_go_by_first_appearance(tmp_path):
    words = [f"w{n * 7919 % 1000}" for n in range(1000)]
    (tmp_path / "train.txt").write_text("\n".join([*words, *words[::2]]), encoding="utf-8")
    (tmp_path / "valid.txt").write_text("zebra ape", encoding="utf-8")
    prepared = prepare([tmp_path / "*.txt"], None, ONE, 0.1, tmp_path / "cache")
    assert prepared.words == [*words[::2], *words[1::2], "zebra", "ape"]


def test_processes_and_chunks_do_not_change_a_byte(corpus, tmp_path, monkeypatch):
    prepare([corpus], None, ONE, 0.1, tmp_path / "one")
    monkeypatch.setattr(workers, "CHUNK", 2000)
    monkeypatch.setattr(prepared_module, "REMAP", 100)
    prepare([corpus], None, Text(processes=2), 0.1, tmp_path / "two")
    assert written(tmp_path / "one") == written(tmp_path / "two")
    assert len(written(tmp_path / "one")) == 7


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1), st.sampled_from(["raw", "tokenised"]))
def test_any_text_round_trips(tmp_path_factory, lines, kind):
    folder = tmp_path_factory.mktemp("any")
    lines = [" ".join(line.split()) for line in lines]
    tokenizer = Tokenizer("en", False, kind)
    sentences = [tokens for line in lines for tokens in tokenizer.sentences(line)]
    (folder / "train.txt").write_bytes("\n".join(lines).encode())
    (folder / "valid.txt").write_bytes(b"zebra .")
    if not sentences:
        with pytest.raises(DataError, match="training text is empty"):
            prepare([folder], None, Text(input=kind), 0.1, folder / "cache")
        return
    prepared = prepare([folder], None, Text(input=kind), 0.1, folder / "cache")
    assert decoded(prepared, "train") == sentences
    assert decoded(prepared, "valid") == [["zebra", "."]]


def test_a_second_call_reads_the_cache(corpus, tmp_path, monkeypatch):
    first = prepare([corpus], None, ONE, 0.1, tmp_path / "cache")
    monkeypatch.setattr(workers, "tokenised", None)  # would fail if anything were tokenised
    second = prepare([corpus], None, Text(processes=2), 0.1, tmp_path / "cache")
    assert second.folder == first.folder
    assert second.fingerprint == first.fingerprint == first.folder.name
    assert second.words == first.words


def test_the_key_is_content_and_settings(corpus, tmp_path):
    cache = tmp_path / "cache"
    moved = corpus.rename(tmp_path / "moved")
    first = prepare([moved], None, ONE, 0.1, cache)
    assert prepare([moved.rename(corpus)], None, ONE, 0.1, cache).fingerprint == first.fingerprint
    others = [
        prepare([corpus], None, Text(lowercase=True), 0.1, cache),
        prepare([corpus], None, Text(language="de"), 0.1, cache),
        prepare([corpus], None, Text(input="tokenised"), 0.1, cache),
        prepare([corpus], None, ONE, 0.2, cache),
    ]
    (corpus / "a.txt").write_text("Something else. It is.", encoding="utf-8")
    others.append(prepare([corpus], None, ONE, 0.1, cache))
    assert len({first.fingerprint, *(other.fingerprint for other in others)}) == 6


@pytest.mark.parametrize("name", ["meta.json", "words.txt", "counts.npy", "train.tokens.bin", "valid.starts.bin"])
@pytest.mark.parametrize("damage", ["missing", "short", "empty"])
def test_a_damaged_cache_is_made_again(corpus, tmp_path, caplog, name, damage):
    first = prepare([corpus], None, ONE, 0.1, tmp_path / "cache")
    before = written(tmp_path / "cache")
    path = first.folder / name
    data = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(data[:-8] if damage == "short" else b"")
    prepare([corpus], None, ONE, 0.1, tmp_path / "cache")
    assert written(tmp_path / "cache") == before
    assert "made again" in caplog.text


def test_valid_files_are_the_validation_text_and_test_files_are_left_out(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    for name in ("train", "valid", "test"):
        (tmp_path / f"{name}.txt").write_text(f"This is {name}.\n" * 50, encoding="utf-8")
    prepared = prepare([tmp_path / "*.txt"], None, ONE, 0.1, tmp_path / "cache")
    assert decoded(prepared, "train") == [["This", "is", "train", "."]] * 50
    assert decoded(prepared, "valid") == [["This", "is", "valid", "."]] * 50
    assert "left out of training as test text" in caplog.text


def test_a_named_validation_file_wins_over_names_and_leaves_training(tmp_path):
    for name in ("a", "b", "valid"):
        (tmp_path / f"{name}.txt").write_text(f"This is {name}.\n", encoding="utf-8")
    prepared = prepare([tmp_path / "*.txt"], [tmp_path / "b.txt"], ONE, 0.1, tmp_path / "cache")
    assert decoded(prepared, "train") == [["This", "is", "a", "."]]
    assert decoded(prepared, "valid") == [["This", "is", "b", "."]]


def test_held_out_paragraphs_do_not_depend_on_their_neighbours(corpus, tmp_path):
    whole = prepare([corpus], None, ONE, 0.1, tmp_path / "cache")
    half = prepare([corpus / "a.txt"], None, ONE, 0.1, tmp_path / "cache")
    valid = decoded(whole, "valid")
    assert valid[: half.valid.n_sentences] == decoded(half, "valid")
    assert 20 <= len(valid) // 2 <= 65  # of 400 paragraphs of two sentences, at a tenth


def test_a_small_corpus_holds_out_more_rather_than_nothing(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(PARAGRAPHS[:12]), encoding="utf-8")
    prepared = prepare([tmp_path / "a.txt"], None, ONE, 0.001, tmp_path / "cache")
    assert prepared.train.n_sentences > prepared.valid.n_sentences > 0
    assert 0.001 < prepared.description["held_out"] < 0.5
    assert prepare([tmp_path / "a.txt"], None, ONE, 0.001, tmp_path / "cache").folder == prepared.folder


def test_one_paragraph_cannot_be_split(tmp_path):
    (tmp_path / "a.txt").write_text("One paragraph.", encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.txt: too few paragraphs .* name a validation file"):
        prepare([tmp_path / "a.txt"], None, ONE, 0.1, tmp_path / "cache")


def test_an_empty_file_is_an_error_that_names_it(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\n \n")
    with pytest.raises(DataError, match=r"a\.txt: no tokens, the training text is empty"):
        prepare([tmp_path / "a.txt"], None, ONE, 0.1, tmp_path / "cache")


def test_an_empty_validation_file_is_an_error_that_names_it(corpus, tmp_path):
    (tmp_path / "none.txt").write_bytes(b"")
    with pytest.raises(DataError, match=r"none\.txt: no tokens, the validation text is empty"):
        prepare([corpus], [tmp_path / "none.txt"], ONE, 0.1, tmp_path / "cache")


def test_an_empty_file_among_others_is_a_warning(corpus, tmp_path, caplog):
    (corpus / "empty.txt").write_bytes(b"")
    prepare([corpus], None, ONE, 0.1, tmp_path / "cache")
    assert "empty.txt holds no tokens" in caplog.text


def test_only_test_files_leave_nothing_to_train_on(tmp_path):
    (tmp_path / "test.txt").write_text("This is a test.", encoding="utf-8")
    with pytest.raises(UsageError, match=r"nothing to train on.*test\.txt"):
        prepare([tmp_path / "test.txt"], None, ONE, 0.1, tmp_path / "cache")


@pytest.mark.parametrize("processes", [1, 2])
def test_bad_bytes_deep_in_the_corpus_leave_nothing_behind(corpus, tmp_path, monkeypatch, processes):
    monkeypatch.setattr(workers, "CHUNK", 2000)
    (corpus / "z.txt").write_bytes(b"Good line, fine.\n" * 3000 + b"caf\xe9\n")
    with pytest.raises(DataError, match=r"z\.txt, line 3001, column 4: byte 0xe9"):
        prepare([corpus], None, Text(processes=processes), 0.1, tmp_path / "cache")
    assert list((tmp_path / "cache" / "corpora").iterdir()) == []


def test_each_file_is_judged_raw_or_tokenised_by_itself(tmp_path):
    (tmp_path / "raw.txt").write_text("The cat sat, and slept. It woke.\n" * 20, encoding="utf-8")
    (tmp_path / "tokenised.txt").write_text("The cat sat , and slept . It woke .\n" * 20, encoding="utf-8")
    (tmp_path / "valid.txt").write_text("no marks\n", encoding="utf-8")
    prepared = prepare([tmp_path / "*.txt"], None, ONE, 0.1, tmp_path / "cache")
    kinds = {file["name"]: file["input"] for file in prepared.description["files"]}
    assert kinds == {"raw.txt": "raw", "tokenised.txt": "tokenised", "valid.txt": "raw"}
    assert prepared.description["input"] == "mixed"
    assert prepared.train.n_sentences == 2 * 20 + 20


def test_the_record_counts_what_is_there(corpus, tmp_path):
    (corpus / "b.txt.xz").unlink()
    prepared = prepare([corpus], None, ONE, 0.1, tmp_path / "cache")
    record = prepared.description
    assert record == json.loads((prepared.folder / "meta.json").read_text(encoding="utf-8"))
    assert record["train"] == {"tokens": prepared.train.n_tokens, "sentences": prepared.train.n_sentences}
    assert record["files"][0]["tokens"] == prepared.train.n_tokens + prepared.valid.n_tokens
    sentence = "Paragraph 3 is here , with Mr. Smith . It ends after 3 words ."
    cased = [word for word in sentence.split() if word.lower() != word.upper()]
    share = sum(word == word.lower() for word in cased) / len(cased)
    assert record["lowercase_share"] == pytest.approx(share)


def test_lower_casing_shows_in_words_and_record(corpus, tmp_path):
    prepared = prepare([corpus], None, Text(lowercase=True), 0.1, tmp_path / "cache")
    assert prepared.description["lowercase_share"] == 1.0
    assert "mr." in prepared.words


def test_a_paragraph_beyond_the_limit_is_cut_at_a_blank(tmp_path):
    (tmp_path / "train.txt").write_text("word " * 40_000, encoding="utf-8")
    (tmp_path / "valid.txt").write_text("word .", encoding="utf-8")
    prepared = prepare([tmp_path / "*.txt"], None, ONE, 0.1, tmp_path / "cache")
    assert prepared.words == ["word", "."]
    assert prepared.train.n_tokens == 40_000


def test_no_more_than_a_few_chunks_are_read_ahead(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "CHUNK", 100)
    path = tmp_path / "a.txt"
    path.write_text("word word word\n" * 1000, encoding="utf-8")
    read = 0

    def counted(chunks):
        nonlocal read
        for chunk in chunks:
            read += 1
            yield chunk

    sources = [Source(path, "train", "raw", "")]
    results = workers.tokenised(counted(workers.chunks(sources)), sources, Recipe("en", False, 0.0), 2)
    for done, _ in enumerate(results, start=1):
        assert read - done <= 4
    assert done == read > 50


def test_workers_drop_their_work_when_reading_fails():
    def chunks():
        for _ in range(3):  # each would take a worker most of a minute
            yield Chunk(0, ["Some text, in raw sentences. " * 100] * 10_000, 1)
        raise DataError("a bad byte")

    start = time.monotonic()
    with pytest.raises(DataError, match="a bad byte"):
        list(workers.tokenised(chunks(), [Source(Path("a.txt"), "train", "raw", "")], Recipe("en", False, 0.0), 2))
    assert time.monotonic() - start < 20


SCRIPT = """
import sys
from pathlib import Path
from toolkit.config import Text
from toolkit.text.prepare import prepare
if __name__ == "__main__":
    prepare([sys.argv[1]], None, Text(processes=2, input="raw"), 0.1, Path(sys.argv[2]))
"""


def test_workers_leave_when_the_parent_is_killed(tmp_path):
    (tmp_path / "a.txt").write_text("This is some text, for long. " * 1_000_000, encoding="utf-8")
    (tmp_path / "run.py").write_text(SCRIPT, encoding="utf-8")
    parent = subprocess.Popen([sys.executable, tmp_path / "run.py", tmp_path / "a.txt", tmp_path / "cache"])
    children = wait_for(lambda: len(found := children_of(parent.pid)) >= 3 and found)  # two and the resource tracker
    parent.kill()
    parent.wait()
    assert wait_for(lambda: not any(map(runs, children)) and "gone") == "gone"


def children_of(pid):
    listing = Path(f"/proc/{pid}/task/{pid}/children")
    if not listing.exists():
        pytest.skip("this system does not list children in /proc")
    return [int(child) for child in listing.read_text().split()]


def runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if result := condition():
            return result
        time.sleep(0.05)
    raise AssertionError("nothing happened in time")


@pytest.mark.parametrize("kind", ["auto", "raw", "tokenised"])
def test_a_corpus_without_blanks_between_words_is_reported_unless_it_is_tokenised(tmp_path, caplog, kind):
    (tmp_path / "a.txt").write_text("".join(f"ฉันชอบภาพยนตร์เรื่องนี้มาก {i}\n" for i in range(30)))
    prepare([tmp_path / "a.txt"], None, Text(input=kind, processes=1), 0.1, tmp_path / "cache")
    assert ("looks Thai" in caplog.text) == (kind != "tokenised")
