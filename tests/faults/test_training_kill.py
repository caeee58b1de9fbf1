"""A `toolkit evaluate` that kill -9 ends in the middle of a training: the same command ends as if it had not been."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from toolkit.bilm.folder import load_model
from toolkit.runs import schema
from toolkit.runs.reader import list_runs, load_run, read_metrics, read_predictions

EPOCHS = 12


def command(folder: Path, store: str, model: Path, *options: str) -> list[str]:
    """Return the command line of one training on a table of made-up sentences whose labels are noise."""
    rng = np.random.default_rng(1)
    rows = [f"{rng.choice(['good', 'bad'])},the {rng.choice(['river', 'bank', 'money'])} {i}\n" for i in range(300)]
    (folder / "table.csv").write_text("label,text\n" + "".join(rows), encoding="utf-8")
    start = [sys.executable, "-m", "toolkit.cli.main", "evaluate", "--task", "csv", "--data", "table.csv", "--json"]
    start += ["--no-floors"]
    sets = {"evaluate.epochs": EPOCHS, "evaluate.patience": EPOCHS, "evaluate.hidden": 8}
    sets |= {"paths.runs": folder / store, "paths.cache": folder / "cache"}
    sets_given = [part for key, value in sets.items() for part in ("--set", f"{key}={value}")]
    return [*start, "--model", str(model), *options, *sets_given]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [("--mix", "gated", "--head", "bilstm"), ("--head", "cnn", "--finetune-rate", "0.01")], ids=str
)
def test_a_training_killed_in_its_middle_ends_as_one_that_was_not(tmp_path: Path, tiny_model: Path, options):
    arguments = {"cwd": tmp_path, "env": dict(os.environ), "text": True}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command(tmp_path, "runs", tiny_model, *options), **arguments, **pipes)
    try:
        deadline = time.monotonic() + 180
        while not (found := list_runs(tmp_path / "runs")) or len(read_metrics(found[0].folder)) < 6:
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.005)
    finally:
        process.kill()
        process.communicate()
    (left,) = list_runs(tmp_path / "runs")
    assert left.status == schema.CRASHED

    folders = []
    for store in ("runs", "whole"):
        done = subprocess.run(
            command(tmp_path, store, tiny_model, *options), **arguments, **pipes, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        (run,) = list_runs(tmp_path / store)
        assert run.status == schema.DONE
        folders.append(run.folder)
        said = re.search(r"goes on behind epoch (\d+)", done.stderr)
        assert (said is not None) == (store == "runs")
        if said:
            assert 2 <= int(said[1]) < EPOCHS
            assert json.loads(done.stdout)["rows"][0]["runs"] == [left.id]
    one, other = (read_predictions(folder) for folder in folders)
    np.testing.assert_array_equal(np.stack(one["probabilities"]), np.stack(other["probabilities"]))
    results = [load_run(folder).results | {"seconds": 0} for folder in folders]
    assert results[0] == results[1]
    tuned = "--finetune-rate" in options
    assert (results[0]["bilm"]["checksums_after"] == [load_model(tiny_model).fingerprint]) != tuned
    steps = [read_metrics(folder)[["name", "step", "value"]] for folder in folders]
    assert steps[0].equals(steps[1])
