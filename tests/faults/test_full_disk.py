"""Disks that are really full: small file systems, mounted for a test."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from disks import KIB, fill
from processes import LINES, wait_for_steps

from toolkit.bilm.export import export
from toolkit.bilm.folder import load_model
from toolkit.config import resolve
from toolkit.embed.tokendump import dump_tokens
from toolkit.errors import DiskFullError
from toolkit.pretrain.pretrain import pretrain, resume
from toolkit.runs.reader import read_run
from toolkit.text.prepare import prepare

WRITES = """
import pathlib, sys
import numpy as np
from toolkit.errors import DiskFullError
from toolkit.hdf5 import writing_hdf5
try:
    with writing_hdf5(pathlib.Path(sys.argv[1])) as file:
        for number in range(4000):
            file[f"group/{number}"] = np.arange(int(sys.argv[2]))
except DiskFullError as error:
    print(error)
    sys.exit(1)
"""


def settings(folder: Path, runs: Path):
    options = {
        "pretrain.preset": "tiny",
        "model.dim": 64,
        "model.projection_dim": 32,
        "model.filters": [(1, 8), (2, 8)],
        "pretrain.unroll_steps": 4,
        "pretrain.batch_size": 8,
        "pretrain.steps": 3,
        "text.input": "tokenised",
        "paths.runs": runs,
        "paths.cache": folder / "cache",
    }
    return resolve(Path(__file__).parents[2] / "config.toml", options, environment={}).settings


@pytest.mark.parametrize(("free", "numbers"), [(1024, 20_000), (110, 1000), (30, 1000), (300, 1), (4, 500), (0, 1)])
def test_hdf5_that_meets_a_full_disk_leaves_nothing_behind_and_the_process_ends_in_order(disk, free, numbers) -> None:
    """In a process of its own, because HDF5 crashes after a failed write no earlier than at its exit."""
    folder = disk(2048)
    (folder / "good").write_text("kept")
    fill(folder, free * KIB)
    done = subprocess.run([sys.executable, "-c", WRITES, str(folder / "good"), str(numbers)], capture_output=True)
    assert done.returncode == 1, done.stderr
    assert re.fullmatch(rb"no room to write .*good: the disk is full, [\d,]+ are free; .*\n", done.stdout)
    assert done.stderr == b""
    assert sorted(entry.name for entry in folder.iterdir()) == ["ballast", "good"]
    assert (folder / "good").read_text() == "kept"


def test_a_cache_that_is_full_is_one_line_and_holds_nothing_half_written(tmp_path, disk) -> None:
    folder = disk(256)
    (tmp_path / "train.txt").write_text(LINES * 10, encoding="utf-8")
    with pytest.raises(DiskFullError, match=r"no room to write .*corpora/[0-9a-f]{16}: the disk is full"):
        prepare([tmp_path / "train.txt"], None, settings(tmp_path, folder).text, 0.05, folder)
    assert list((folder / "corpora").iterdir()) == []


@pytest.mark.slow
def test_an_export_that_does_not_fit_is_one_line_and_can_be_made_up_for(tmp_path, disk) -> None:
    folder = disk(8 * KIB)
    (tmp_path / "train.txt").write_text(LINES, encoding="utf-8")
    chosen = settings(tmp_path, folder / "runs")
    first = pretrain([tmp_path / "train.txt"], chosen)
    (checkpoint,) = (folder / "runs" / first["run"] / "checkpoints").glob("*.h5")
    size = checkpoint.stat().st_size
    shutil.rmtree(folder / "runs")
    ballast = fill(folder, size + 245 * KIB)  # a checkpoint fits, with what its estimate adds; the model does not
    with pytest.raises(DiskFullError, match=r"model: [\d,]+ bytes are needed, [\d,]+ are free; free some space"):
        pretrain([tmp_path / "train.txt"], chosen)
    (run,) = (folder / "runs").iterdir()
    assert read_run(folder / "runs", run.name).summary.status == "failed"
    assert not (run / "model").exists()
    ballast.unlink()
    again = resume(folder / "runs", run.name, {})
    assert again["steps"] == 3
    assert load_model(run / "model").card["steps"] == again["exported_step"]
    assert read_run(folder / "runs", run.name).summary.status == "done"


@pytest.mark.slow
def test_a_checkpoint_that_does_not_fit_stops_the_run_and_leaves_the_last_one_to_go_on_from(
    tmp_path, disk, start
) -> None:
    folder = disk(8 * KIB)
    process = start(tmp_path, f"paths.runs={folder / 'runs'}", "pretrain.checkpoint_minutes=0.001")
    (tmp_path / "runs").symlink_to(folder / "runs")
    run = wait_for_steps(tmp_path, process)
    while not list((run / "checkpoints").glob("*.json")):
        assert process.poll() is None
    ballast = fill(folder)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    last = err.strip().splitlines()[-1]
    assert last.startswith("toolkit: no room to write ") and "free some space" in last, err
    assert "Traceback" not in err
    read = read_run(folder / "runs", run.name)
    assert read.summary.status == "failed" and "no room to write" in read.manifest["message"]
    assert not list(run.rglob(".*.tmp-*"))
    before = max(int(path.stem[5:]) for path in (run / "checkpoints").glob("*.json"))
    ballast.unlink()
    process = start(tmp_path, resume=run.name, steps=before + 5)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert f"resuming at step {before}\n" in err
    assert json.loads(out)["steps"] == before + 5


@pytest.mark.parametrize(("out", "left"), [("published", 8 * KIB), ("5.zip", 8 * KIB), ("tokens.hdf5", 0)])
def test_an_export_or_a_table_that_does_not_fit_leaves_nothing(disk, tiny_model, out, left):
    folder = disk(64)
    model = load_model(tiny_model)
    ballast = fill(folder, left)
    write = dump_tokens if out == "tokens.hdf5" else export
    with pytest.raises(DiskFullError, match=rf"no room to write .*{re.escape(out)}"):
        write(model, folder / out)
    assert list(folder.iterdir()) == [ballast]
    ballast.unlink()
