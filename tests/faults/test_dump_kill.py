"""Real `toolkit embed` processes that are killed, or meet a full disk, and are gone on with."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest
from disks import KIB, fill
from oracle import write_random_model

from toolkit.bilm.folder import load_model
from toolkit.config import Embed
from toolkit.embed.dump import dump
from toolkit.embed.dumpfile import open_embeddings
from toolkit.embed.dumpwriter import DumpWriter
from toolkit.errors import DiskFullError, FormatError, UsageError

# Commits all the time; a process is killed by itself, as kill -9 does it, at its Nth system call of one kind.
CHILD = """
import os, pathlib, signal, sys
from toolkit.bilm.folder import load_model
from toolkit.config import Embed
from toolkit.embed import dump as library

model, text, out, call, at, state = sys.argv[1:]
library.COMMIT_SECONDS, library.COMMIT_SHARE = 0.0, 1e9
real, left = getattr(os, call), int(at)
def counted(*arguments):
    global left
    if "partial" in os.readlink(f"/proc/self/fd/{arguments[0]}") if isinstance(arguments[0], int) else True:
        left -= 1
        if left == 0:
            if call == "pwrite":
                real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2], arguments[2])
            os.kill(os.getpid(), signal.SIGKILL)
    return real(*arguments)
setattr(os, call, counted)
model = load_model(pathlib.Path(model))
settings = Embed(state=state, batch_tokens=64)
library.dump(model, pathlib.Path(text), pathlib.Path(out), settings, sentence_to_index=True, resume=True)
"""
WORDS = [f"w{number}" for number in range(300)]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return write_random_model(tmp_path_factory.mktemp("model") / "tiny", seed=7)


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    chance = random.Random(3)
    path.write_text("".join(" ".join(chance.choices(WORDS, k=chance.randrange(8))) + "\n" for _ in range(900)))
    return path


def content(path: Path) -> dict[str, bytes]:
    """Everything that a reader can see, to the bit."""
    with h5py.File(path) as file:
        seen = {name: (item.shape, item.dtype.str, item[()].tobytes()) for name, item in file.items() if name.isdigit()}
        return {
            **seen,
            **{name: str(value) for name, value in file.attrs.items()},
            "index": file["sentence_to_index"][0],
        }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("state", "kills"),
    [
        ("warm", [("pwrite", 3), ("pwrite", 300), ("fsync", 3), ("ftruncate", 4), ("replace", 2)]),
        ("stateful", [("fsync", 3), ("pwrite", 200)]),
    ],
)
def test_a_dump_that_is_killed_again_and_again_equals_an_uninterrupted_one(model, text, tmp_path, state, kills) -> None:
    whole, out, settings = tmp_path / "whole.h5", tmp_path / "out.h5", Embed(state=state, batch_tokens=64)
    dump(load_model(model), text, whole, settings, sentence_to_index=True)
    for call, at in kills:
        command = [sys.executable, "-c", CHILD, str(model), str(text), str(out), call, str(at), state]
        done = subprocess.run(command, capture_output=True, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()
        assert not out.exists()
    document = dump(load_model(model), text, out, settings, sentence_to_index=True, resume=True)
    assert 0 < document["resumed_at"] < 900
    assert content(out) == content(whole)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["out.h5", "whole.h5"]
    again = dump(load_model(model), text, out, settings, sentence_to_index=True, resume=True)
    assert again["resumed_at"] == 900
    assert content(out) == content(whole)


@pytest.fixture
def killed(tmp_path) -> Iterator[Path]:
    """A writer that was killed behind its commit of 300 sentences, in the midst of others."""
    code = f"""
import os, numpy as np
from pathlib import Path
from toolkit.embed.dumpwriter import DumpWriter
with DumpWriter(Path({str(tmp_path / "out.h5")!r}), {{"layers": "all", "dtype": "float32"}}) as writer:
    for number in range(700):
        writer.write(np.full((3, number % 5, 4), number, np.float32))
        if number in (99, 299):
            writer.commit({{"number": np.array(number)}})
    os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    yield tmp_path / "out.h5"


def test_what_was_committed_is_gone_on_with(killed) -> None:
    with DumpWriter(killed, {"layers": "all", "dtype": "float32"}, resume=True) as writer:
        assert (writer.sentences, writer.tokens, int(writer.memory["number"])) == (300, 600, 299)
        for number in range(300, 305):
            writer.write(np.full((3, number % 5, 4), number, np.float32))
    with open_embeddings(killed) as read:
        assert [len(set(sentence.ravel()) - {number}) for number, sentence in enumerate(read)] == [0] * 305
        assert [sentence.shape for sentence in read] == [(3, number % 5, 4) for number in range(305)]


def test_an_unfinished_dump_is_no_dump_and_is_not_thrown_away(killed) -> None:
    with pytest.raises(FormatError):
        open_embeddings(Path(f"{killed}.partial"))
    with pytest.raises(UsageError, match=r"first 300 sentences of an unfinished dump: go on with --resume"):
        DumpWriter(killed, {"layers": "all", "dtype": "float32"}).__enter__()


def test_what_is_of_another_kind_is_not_gone_on_with(killed) -> None:
    with pytest.raises(UsageError, match=r"its dtype is 'float32', here it would be 'float16'"):
        DumpWriter(killed, {"layers": "all", "dtype": "float16"}, resume=True).__enter__()


def test_a_full_disk_keeps_what_was_committed(disk) -> None:
    folder = disk(4 * KIB)
    out, block = folder / "out.h5", np.ones((3, 10, 32), np.float32)

    def fill_up(resume: bool) -> None:
        with DumpWriter(out, {"layers": "all"}, resume=resume) as writer:
            while writer.sentences < 500:
                writer.write(block * writer.sentences)
                if writer.sentences % 100 == 0:
                    writer.commit({})

    ballast = fill(folder, 1000 * KIB)
    with pytest.raises(DiskFullError, match=r"out\.h5.*: the disk is full.*the first [12]00 sentences are kept"):
        fill_up(resume=False)
    assert sorted(entry.name for entry in folder.iterdir()) == ["ballast", "out.h5.partial", "out.h5.partial.side"]
    ballast.unlink()
    fill_up(resume=True)
    with open_embeddings(out) as read:
        assert [sentence.max() for sentence in read] == list(range(500))


@pytest.mark.slow
def test_a_command_that_is_killed_says_how_to_go_on_and_does(model, tmp_path) -> None:
    (tmp_path / "text.txt").write_text("a b c\n" * 100_000, encoding="utf-8")
    line = [sys.executable, "-m", "toolkit.cli.main", "embed", str(model), "text.txt", "-o", "out.h5", "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": tmp_path, "env": os.environ}
    process = subprocess.Popen([*line, "--layers", "top"], **pipes)
    while not (tmp_path / "out.h5.partial.side").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "sentences are kept, --resume goes on behind them" in err
    refused = subprocess.run([*line, "--layers", "all", "--resume"], **pipes, check=False)
    assert refused.returncode == 2 and "its layers is 'top', here it would be 'all'" in refused.stderr
    done = subprocess.run([*line, "--layers", "top", "--resume"], **pipes, check=False)
    assert done.returncode == 0, done.stderr
    assert 0 < json.loads(done.stdout)["resumed_at"] < 100_000
