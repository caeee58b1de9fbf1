"""Real `toolkit pretrain` processes for the tests that stop or kill them."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

LINES = "the cats often eat the fish .\nthe cows never eat the grass .\nthe bees always make the honey .\n" * 400


def start(
    folder: Path,
    *changes: str,
    resume: str | None = None,
    steps: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen:
    """Start a run that would go on for long unless `steps` end it, or go on with one."""
    if not (folder / "train.txt").exists():  # another worker of the job may be reading it
        (folder / "train.txt").write_text(LINES, encoding="utf-8")
    command = [sys.executable, "-m", "toolkit.cli.main", "pretrain", "--json"]
    sets = [f"paths.runs={folder / 'runs'}", f"paths.cache={folder / 'cache'}"]
    if resume:
        command += ["--resume", resume]
    else:
        command += ["--corpus", str(folder / "train.txt"), "--preset", "tiny"]
        sets += ["pretrain.batch_size=8", "pretrain.unroll_steps=4", "pretrain.epochs=100000", "text.input=tokenised"]
        sets += ["model.dim=32", "model.projection_dim=16", "model.filters=[[1, 8], [2, 8]]"]
        # A short run is then the beginning of a long one.
        sets += ["pretrain.schedule=constant", "pretrain.warmup_steps=0", "pretrain.dropout=0.1", *changes]
    command += [part for text in sets for part in ("--set", text)]
    command += ["--steps", str(steps)] if steps else []
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, env=os.environ | dict(environment or {}), **pipes)


def wait_for_steps(folder: Path, process: subprocess.Popen) -> Path:
    for _ in range(600):
        found = list((folder / "runs").glob("*/metrics.jsonl"))
        if found and "perplexity" in found[0].read_text():
            return found[0].parent
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.1)
    raise AssertionError("the run never took a step")
