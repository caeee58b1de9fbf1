"""The file under an unfinished dump: it comes back to its last commit wherever a crash falls."""

import contextlib
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.embed import partialfile
from toolkit.embed.partialfile import PAGE, PartialFile
from toolkit.errors import FormatError, UsageError

OFFSETS = st.integers(0, 3 * PAGE)
STEPS = st.one_of(
    st.tuples(st.just("write"), OFFSETS, st.integers(1, 2 * PAGE)),
    st.tuples(st.just("truncate"), OFFSETS, st.just(0)),
    st.tuples(st.just("commit"), st.just(0), st.just(0)),
    st.tuples(st.just("read"), OFFSETS, st.integers(1, 2 * PAGE)),
)


class Crash(BaseException):
    """Ends the process in thought: nothing may be tidied up behind it."""


class Crashing:
    """Counts the system calls that change a file and crashes in the middle of the one it was told."""

    def __init__(self, patch: pytest.MonkeyPatch, at: int) -> None:
        self.left = at
        patch.setattr(os, "fsync", self._counted(lambda descriptor: None, "fsync"))  # a process's death loses no page
        for name in ("pwrite", "ftruncate"):
            patch.setattr(os, name, self._counted(getattr(os, name), name))
        patch.setattr(Path, "replace", self._counted(Path.replace, "replace"))

    def _counted(self, call, name):
        def counted(*arguments):
            self.left -= 1
            if self.left == 0:
                if name == "pwrite":
                    descriptor, data, offset = arguments
                    call(descriptor, data[: len(data) // 2], offset)
                raise Crash
            return call(*arguments)

        return counted


def read(file: PartialFile) -> bytes:
    content = bytearray(file.seek(0, os.SEEK_END))
    file.seek(0)
    file.readinto(content)
    return bytes(content)


def play(file: PartialFile, model: bytearray, committed: list[bytes], steps, rng) -> None:
    """Do the same to the file and to plain bytes; `committed` gets what a restoring may give."""
    for kind, offset, count in steps:
        if kind == "write":
            data = rng.bytes(count)
            file.seek(offset)
            file.write(data)
            model.extend(bytes(max(0, offset - len(model))))
            model[offset : offset + count] = data
        elif kind == "truncate":
            file.truncate(offset)
            model[:] = model[:offset].ljust(offset, b"\0")
        elif kind == "read":
            got = bytearray(count)
            file.seek(offset)
            file.readinto(got)
            assert got == bytes(model[offset : offset + count]).ljust(count, b"\0")
        else:
            committed.append(bytes(model))
            file.commit({"number": np.array(len(committed))})


@settings(max_examples=50, deadline=None)
@given(st.lists(STEPS, max_size=12), st.integers(0, 2**31))
def test_it_is_a_file_like_any_other(steps, seed) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        file, model = PartialFile(Path(folder) / "file", Path(folder) / "side"), bytearray()
        play(file, model, [], steps, np.random.default_rng(seed))
        assert read(file) == model
        file.commit({})
        file.close()
        assert (Path(folder) / "file").read_bytes() == model


CHANGES = st.lists(
    st.one_of(*(st.tuples(st.just(kind), OFFSETS, st.integers(1, PAGE)) for kind in ("write", "truncate")))
)
ROUNDS = st.lists(CHANGES.map(lambda changes: [*changes, ("commit", 0, 0)]), min_size=2, max_size=3)


@settings(max_examples=8, deadline=None)
@given(ROUNDS, st.integers(0, 2**31))
def test_a_crash_anywhere_leaves_the_last_commit(rounds, seed) -> None:
    steps = [("write", 0, 2 * PAGE + 100), ("commit", 0, 0), *(step for changes in rounds for step in changes)]
    crash, crashed = 0, True
    while crashed:  # at the first call, the second …, until the end is reached
        crash += 1
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            path, side = Path(folder) / "file", Path(folder) / "side"
            file, committed = PartialFile(path, side), [b""]
            file.commit({"number": np.array(1)})
            with patch.context() as crashing:
                left = Crashing(crashing, crash)
                with contextlib.suppress(Crash):
                    play(file, bytearray(), committed, steps, np.random.default_rng(seed))
                crashed = left.left <= 0
            file.close()  # gives the lock back; writes nothing
            with PartialFile(path, side, restore=True) as again:
                number = int(again.note["number"])
                assert number in (len(committed), len(committed) - 1)  # a commit that crashed holds, or the one before
                assert read(again) == committed[number - 1]


def test_the_disk_refuses_once_and_nothing_more_is_written(tmp_path, monkeypatch) -> None:
    file = PartialFile(tmp_path / "file", tmp_path / "side")
    file.write(b"committed")
    file.commit({})

    def refuse(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", refuse)
        assert file.write(b"more") == 4
    file.write(b"even more")
    with pytest.raises(OSError, match="No space"):
        file.commit({})
    file.close()
    with PartialFile(tmp_path / "file", tmp_path / "side", restore=True) as again:
        assert read(again) == b"committed"


def test_two_processes_never_write_one_file(tmp_path) -> None:
    with (
        PartialFile(tmp_path / "file", tmp_path / "side"),
        pytest.raises(UsageError, match="being written by another process"),
    ):
        PartialFile(tmp_path / "file", tmp_path / "side")


def test_damaged_side_files_are_refused(tmp_path) -> None:
    with PartialFile(tmp_path / "file", tmp_path / "side") as file:
        file.write(bytes(10_000))
        file.commit({})
        file.seek(5)
        file.write(b"changed")
        file.commit({})
    whole = (tmp_path / "side").read_bytes()
    for damaged in (b"", whole[:100], whole[:-30], whole.replace(b"changed", b"chanGed")):
        (tmp_path / "side").write_bytes(damaged)
        with pytest.raises(FormatError, match=r"side is damaged .*start anew"):
            PartialFile(tmp_path / "file", tmp_path / "side", restore=True)
    (tmp_path / "side").write_bytes(whole)
    os.truncate(tmp_path / "file", 4000)
    with pytest.raises(FormatError, match=r"holds 4,000 bytes, at its last commit 10,000"):
        PartialFile(tmp_path / "file", tmp_path / "side", restore=True)
    partialfile.write_side(tmp_path / "side", 0, np.empty(0, np.int64), np.empty((0, PAGE), np.uint8), {})
    assert partialfile.read_side(tmp_path / "side")[0] == 0
