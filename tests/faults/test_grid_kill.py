"""A grid of evaluations that is killed goes on with what is missing: nothing is trained twice."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from toolkit.runs import schema
from toolkit.runs.reader import list_runs


def start(folder: Path, model: Path) -> subprocess.Popen:
    """Start a grid of two mixes with three seeds each, on a table of made-up sentences."""
    rows = [f"{'good' if i % 2 else 'bad'},{'a fine' if i % 2 else 'a poor'} film number {i}\n" for i in range(300)]
    (folder / "table.csv").write_text("label,text\n" + "".join(rows), encoding="utf-8")
    command = [sys.executable, "-m", "toolkit.cli.main", "evaluate", "--task", "csv", "--data", "table.csv", "--json"]
    command += ["--model", str(model), "--mix", "none,top", "--seeds", "3", "--head", "cnn", "--no-floors"]
    sets = {"evaluate.epochs": 12, "evaluate.patience": 12, "evaluate.hidden": 8}
    sets |= {"paths.runs": folder / "runs", "paths.cache": folder / "cache"}
    command += [part for key, value in sets.items() for part in ("--set", f"{key}={value}")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, env=dict(os.environ), **pipes)


def statuses(folder: Path) -> dict[str, str]:
    return {run.id: run.status for run in list_runs(folder / "runs")}


@pytest.mark.slow
def test_a_grid_killed_in_the_middle_of_a_training_goes_on_and_trains_nothing_twice(tmp_path: Path, tiny_model: Path):
    process = start(tmp_path, tiny_model)
    try:
        deadline = time.monotonic() + 120
        while sorted(statuses(tmp_path).values()) != [schema.DONE, schema.DONE, schema.RUNNING]:
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        process.kill()
        process.communicate()
    left = statuses(tmp_path)
    done = {run for run, status in left.items() if status == schema.DONE}
    assert Counter(left.values()) == {schema.DONE: 2, schema.CRASHED: 1}
    written = {run: (tmp_path / "runs" / run / schema.RESULTS).stat().st_mtime_ns for run in done}

    again = start(tmp_path, tiny_model)
    out, errors = again.communicate(timeout=200)
    assert again.returncode == 0, errors
    assert "6 runs: 2 taken" in errors and "4 to train, about" in errors
    document = json.loads(out)
    assert document["taken"] == 2
    finished = [run for run in list_runs(tmp_path / "runs") if run.status == schema.DONE]
    assert Counter((run.group, run.seed) for run in finished).most_common(1)[0][1] == 1
    assert len(finished) == 6
    assert {run: (tmp_path / "runs" / run / schema.RESULTS).stat().st_mtime_ns for run in done} == written
    in_table = {run for row in document["table"]["cells"] for cell in row for run in cell["runs"]}
    assert in_table == {run.id for run in finished} >= done
