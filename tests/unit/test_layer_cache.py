"""The cache of layers: bounded, the least recently used goes first, and no reader ever sees half of an entry."""

import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.adapter.cache import LayerCache, cache_report
from toolkit.errors import UsageError

SIZE = 100


def read(folder: Path) -> str | None:
    text = (folder / "text").read_text() if (folder / "text").exists() else ""
    return text if len(text) == SIZE else None


def writer(letter: str, calls: list[str] | None = None) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "text").write_text(letter * SIZE)
        if calls is not None:
            calls.append(letter)

    return write


def fill(cache: LayerCache, letters: str) -> None:
    for time, letter in enumerate(letters, 1):
        cache.get(letter, read, writer(letter), SIZE)
        os.utime(cache.folder / letter, (time, time))


def test_an_entry_is_written_once(tmp_path):
    cache, calls = LayerCache(tmp_path / "layers", 10 * SIZE), []
    found = [cache.get("a", read, writer("a", calls), SIZE) for _ in range(3)]
    assert found == ["a" * SIZE] * 3
    assert calls == ["a"]


def test_the_least_recently_used_make_room_and_no_more_than_needed(tmp_path):
    cache = LayerCache(tmp_path / "layers", 3 * SIZE)
    fill(cache, "abc")
    cache.get("a", read, writer("-"), SIZE)  # used now: b is the oldest
    cache.get("d", read, writer("d"), SIZE)
    assert {key for key, *_ in cache.entries()} == {"a", "c", "d"}


def test_what_is_larger_than_the_cache_is_refused_and_nothing_is_removed(tmp_path):
    cache = LayerCache(tmp_path / "layers", 2 * SIZE)
    fill(cache, "ab")
    with pytest.raises(UsageError, match=r"need 201 bytes, and the cache may hold 200: raise paths\.cache_bytes"):
        cache.get("c", read, writer("c"), 201)
    assert len(cache.entries()) == 2


def test_a_damaged_entry_is_made_again(tmp_path):
    cache = LayerCache(tmp_path / "layers", SIZE)
    fill(cache, "a")
    (cache.folder / "a" / "text").write_text("cut")
    assert cache.get("a", read, writer("b"), SIZE) == "b" * SIZE


def test_an_entry_that_is_removed_stays_readable_for_who_has_it_open(tmp_path):
    cache = LayerCache(tmp_path / "layers", SIZE)
    fill(cache, "a")
    with (cache.folder / "a" / "text").open() as file:
        cache.get("b", read, writer("b"), SIZE)
        assert not (cache.folder / "a").exists()
        assert file.read() == "a" * SIZE


def test_report_and_clearing(tmp_path):
    cache = LayerCache(tmp_path / "layers", 5 * SIZE)
    fill(cache, "ab")
    document, text = cache_report(cache, clear=True)
    assert (document["entries"], document["bytes"], document["limit"]) == (2, 2 * SIZE, 5 * SIZE)
    assert "2 sets of sentences, 200 bytes of at most 500" in text and "removed" in text
    assert cache.entries() == []
    assert cache_report(LayerCache(tmp_path / "none", 1), clear=True)[0]["entries"] == 0


def churn(folder: Path, start: int, wrong: "multiprocessing.Queue[str]") -> None:
    """Ask for five entries of which two fit, over and over, so that every call may write or remove something."""
    cache = LayerCache(folder, 2 * SIZE)
    for number in range(150):
        letter = "abcde"[(start + number * (start + 1)) % 5]
        found = cache.get(letter, read, writer(letter), SIZE)
        if found != letter * SIZE:
            wrong.put(f"{letter}: {found!r}")
    wrong.put("")


def test_processes_that_write_and_remove_at_the_same_time_never_read_half_an_entry(tmp_path):
    context = multiprocessing.get_context("fork")
    wrong: multiprocessing.Queue[str] = context.Queue()
    processes = [context.Process(target=churn, args=(tmp_path / "layers", start, wrong)) for start in range(3)]
    for process in processes:
        process.start()
    found = [wrong.get(timeout=60) for _ in processes]
    for process in processes:
        process.join()
    assert found == ["", "", ""]
    assert [process.exitcode for process in processes] == [0, 0, 0]
