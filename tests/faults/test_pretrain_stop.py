"""Real signals to a real `toolkit pretrain`."""

import json
import signal

import pytest
from processes import wait_for_steps

from toolkit.bilm.folder import load_model
from toolkit.runs.reader import read_run


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, "stopped"), (signal.SIGTERM, "killed")])
def test_a_signal_leaves_a_run_with_a_model_that_loads(tmp_path, start, sent, status) -> None:
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


@pytest.mark.slow
def test_kill_9_leaves_no_half_written_model(tmp_path, start) -> None:
    process = start(tmp_path)
    folder = wait_for_steps(tmp_path, process)
    process.kill()
    process.communicate(timeout=60)
    assert read_run(tmp_path / "runs", folder.name).summary.status == "crashed"
    assert not (folder / "model").exists()
