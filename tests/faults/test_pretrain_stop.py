"""Real signals to a real `toolkit pretrain`."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from toolkit.bilm.folder import load_model
from toolkit.runs.reader import read_run

LINES = "the cats often eat the fish .\nthe cows never eat the grass .\nthe bees always make the honey .\n" * 400


def start(folder: Path) -> subprocess.Popen:
    (folder / "train.txt").write_text(LINES, encoding="utf-8")
    sets = ["pretrain.batch_size=8", "model.dim=32", "model.projection_dim=16", "pretrain.epochs=100000"]
    sets += [f"paths.runs={folder / 'runs'}", f"paths.cache={folder / 'cache'}", "text.input=tokenised"]
    command = [sys.executable, "-m", "toolkit.cli.main", "pretrain", "--corpus", str(folder / "train.txt"), "--json"]
    command += ["--preset", "tiny", *(part for text in sets for part in ("--set", text))]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_steps(folder: Path, process: subprocess.Popen) -> Path:
    for _ in range(600):
        found = list((folder / "runs").glob("*/metrics.jsonl"))
        if found and "perplexity" in found[0].read_text():
            return found[0].parent
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.1)
    raise AssertionError("the run never took a step")


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, "stopped"), (signal.SIGTERM, "killed")])
def test_a_signal_leaves_a_run_with_a_model_that_loads(tmp_path, sent, status) -> None:
    process = start(tmp_path)
    folder = wait_for_steps(tmp_path, process)
    process.send_signal(sent)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    document = json.loads(out)
    assert document["stopped"] and document["steps"] > 0
    assert read_run(tmp_path / "runs", folder.name).summary.status == status
    assert load_model(folder / "model").card["steps"] == document["steps"]


def test_kill_9_leaves_no_half_written_model(tmp_path) -> None:
    process = start(tmp_path)
    folder = wait_for_steps(tmp_path, process)
    process.kill()
    process.communicate(timeout=60)
    assert read_run(tmp_path / "runs", folder.name).summary.status == "crashed"
    assert not (folder / "model").exists()
