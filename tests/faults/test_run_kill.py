"""Real processes that write a run and are killed for real: what a reader makes of them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolkit.errors import UsageError
from toolkit.runs import schema
from toolkit.runs.reader import list_runs, read_metrics, remove_run

CHILD = """
import sys, time
from pathlib import Path
from toolkit.config import Settings
from toolkit.runs.writer import RunWriter

with RunWriter.start(Path(sys.argv[1]), "pretrain", "doomed", Settings(), 1) as run:
    for step in range(100_000):
        run.metric("loss", 1.0, step=step)
        if step == 20:
            print("writing", flush=True)
        time.sleep(0.002)
"""


@pytest.fixture
def child(tmp_path: Path) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_run_is_crashed_as_soon_as_kill_9_took_its_process(child: subprocess.Popen, tmp_path: Path) -> None:
    assert [run.status for run in list_runs(tmp_path)] == [schema.RUNNING]
    child.send_signal(signal.SIGKILL)
    child.wait()
    (run,) = list_runs(tmp_path)
    assert (run.status, run.problem, run.alive) == (schema.CRASHED, "", False)


def test_a_zombie_that_nobody_has_waited_for_is_crashed_too(child: subprocess.Popen, tmp_path: Path) -> None:
    child.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, and still in the process table
    assert [run.status for run in list_runs(tmp_path)] == [schema.CRASHED]


def test_metrics_of_a_killed_run_are_whole_lines_up_to_the_kill(child: subprocess.Popen, tmp_path: Path) -> None:
    child.send_signal(signal.SIGKILL)
    child.wait()
    steps = read_metrics(list_runs(tmp_path)[0].folder)["step"].tolist()
    assert len(steps) > 20
    assert steps == list(range(len(steps)))


def test_sigterm_leaves_the_status_killed(child: subprocess.Popen, tmp_path: Path) -> None:
    child.terminate()
    assert child.wait() == 128 + signal.SIGTERM
    assert [run.status for run in list_runs(tmp_path)] == [schema.KILLED]


def test_ctrl_c_leaves_the_status_stopped(child: subprocess.Popen, tmp_path: Path) -> None:
    child.send_signal(signal.SIGINT)
    child.wait()
    assert [run.status for run in list_runs(tmp_path)] == [schema.STOPPED]


def test_a_living_run_cannot_be_removed_and_a_crashed_one_can(child: subprocess.Popen, tmp_path: Path) -> None:
    (run,) = list_runs(tmp_path)
    with pytest.raises(UsageError, match="stop it first"):
        remove_run(run)
    child.kill()
    child.wait()
    remove_run(list_runs(tmp_path)[0])
    assert list(tmp_path.iterdir()) == []


def test_two_processes_that_start_in_one_second_get_two_folders(tmp_path: Path) -> None:
    code = CHILD.replace("range(100_000)", "range(1)")
    children = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) for _ in range(3)]
    deadline = time.monotonic() + 120
    assert [process.wait(timeout=deadline - time.monotonic()) for process in children] == [0, 0, 0]
    assert [run.status for run in list_runs(tmp_path)] == [schema.DONE] * 3
