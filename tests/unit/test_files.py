"""Files written whole or not at all: what killed processes leave behind, and full disks."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from toolkit.errors import DiskFullError
from toolkit.files import DAY, atomic_folder, atomic_path, room_for, sweep

KILLED = """
import os, signal, sys
from pathlib import Path
from toolkit.files import atomic_folder, atomic_path

final = Path(sys.argv[1])
with (atomic_path if sys.argv[2] == "file" else atomic_folder)(final) as temporary:
    (temporary if sys.argv[2] == "file" else temporary / "part").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_while_writing(final: Path, kind: str) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(final), kind], check=False)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_process_left_is_swept_up(tmp_path, kind) -> None:
    kill_while_writing(tmp_path / "final", kind)
    assert len(list(tmp_path.iterdir())) == 1
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_next_folder_written_sweeps_up_beside_itself(tmp_path) -> None:
    kill_while_writing(tmp_path / "final", "folder")
    with atomic_folder(tmp_path / "other") as temporary:
        (temporary / "part").write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_what_a_living_process_writes_is_left_alone(tmp_path) -> None:
    with atomic_path(tmp_path / "file") as file, atomic_folder(tmp_path / "folder") as folder:
        file.write_text("half")
        for path in (file, folder):
            os.utime(path, (0, 0))  # however old
        sweep(tmp_path)
        assert file.exists() and folder.exists()


@pytest.mark.parametrize("owner", ["0123abcd-1-x", "oldformat"])
def test_what_another_host_may_be_writing_is_swept_up_after_a_day_without_a_change(tmp_path, owner) -> None:
    folder = tmp_path / f".corpus.tmp-{owner}"
    folder.mkdir()
    part = folder / "tokens.bin"
    part.write_text("half")
    then = time.time() - 2 * DAY
    os.utime(folder, (then, then))
    sweep(tmp_path)
    assert folder.exists()  # its file has just been written
    os.utime(part, (then, then))
    sweep(tmp_path)
    assert not folder.exists()


def test_names_of_others_and_links_are_never_touched(tmp_path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / ".hidden").write_text("mine")
    (tmp_path / "notes.tmp-1").write_text("mine")
    (tmp_path / ".link.tmp-x").symlink_to(tmp_path / "target")
    for path in tmp_path.iterdir():
        os.utime(path, (0, 0), follow_symlinks=False)
    sweep(tmp_path)
    assert len(list(tmp_path.iterdir())) == 4


def test_a_replacement_cut_short_between_its_two_steps_is_put_back(tmp_path) -> None:
    kill_while_writing(tmp_path / "model", "folder")
    (left,) = tmp_path.iterdir()
    old = tmp_path / left.name.replace(".tmp-", ".old-")
    old.mkdir()
    (old / "weights").write_text("whole")
    sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model" / "weights").read_text() == "whole"


def test_too_little_room_is_said_with_both_sizes_before_anything_is_written(tmp_path) -> None:
    with (
        pytest.raises(DiskFullError, match=r"new/file: 1,000,000,000,000,000,000 bytes are needed, [\d,]+ are free"),
        room_for(tmp_path / "new" / "file", 10**18),
    ):
        raise AssertionError("never reached")
