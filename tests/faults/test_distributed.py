"""Two real worker processes on this machine: equal to one process, exact after a kill, and never a hang."""

import json
import signal
import socket
import subprocess
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from processes import wait_for_steps

from toolkit.bilm.folder import load_model
from toolkit.pretrain import checkpoint
from toolkit.runs.reader import list_runs, read_metrics

SETS = ("pretrain.batch_size=4", "pretrain.compute_dtype=float32", "pretrain.average=0.9")


def free_ports(count: int) -> list[int]:
    """Ports that the system gives; they may be taken by the time they are used, which is rare."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("localhost", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def start_two(start, folder: Path, *sets: str, **options) -> list[subprocess.Popen]:
    workers = [f"localhost:{port}" for port in free_ports(2)]
    folder.mkdir(exist_ok=True)
    jobs = []
    for index in range(2):
        document = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
        jobs.append(start(folder, *SETS, *sets, environment={"TF_CONFIG": json.dumps(document)}, **options))
    return jobs


def finished(jobs: list[subprocess.Popen]) -> list[dict]:
    documents = []
    for job in jobs:
        out, err = job.communicate(timeout=300)
        assert job.returncode == 0, err
        documents.append(json.loads(out))
    return documents


def values(folder: Path, step: int) -> dict[str, np.ndarray]:
    """Everything in the checkpoint of a step: weights, optimizer slots and the states of all rows."""
    (run,) = (folder / "runs").iterdir()
    found: dict[str, np.ndarray] = {}
    with h5py.File(run / checkpoint.FOLDER / f"step-{step:09d}.h5", "r") as file:
        file.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return found


def distance(ones: dict[str, np.ndarray], others: dict[str, np.ndarray]) -> float:
    assert ones.keys() == others.keys()
    return max(float(np.abs(ones[name] - others[name]).max()) for name in ones)


@pytest.mark.slow
def test_two_workers_train_as_one_process_does_on_the_joined_batch(tmp_path, start) -> None:
    (tmp_path / "one").mkdir()
    documents = finished(start_two(start, tmp_path / "two", steps=20))
    (alone,) = finished([start(tmp_path / "one", *SETS, "pretrain.batch_size=8", steps=20)])
    two, one = values(tmp_path / "two", 20), values(tmp_path / "one", 20)
    assert two["states/cells"].shape[2] == 8
    assert distance(two, one) < 1e-4
    assert [document["run"] for document in documents] == [documents[0]["run"]] * 2
    assert documents[0]["tokens"] == alone["tokens"] == 20 * 8 * 4
    assert documents[0]["validation_perplexity"]["mean"] == pytest.approx(alone["validation_perplexity"]["mean"])
    (run,) = list_runs(tmp_path / "two" / "runs")  # worker 1 made none
    assert run.status == "done" and load_model(run.folder / "model").card["steps"] == 20
    assert not read_metrics(run.folder).duplicated(["name", "step", "split"]).any()
    # One process may take over what two have begun: the joined batch stays.
    finished([start(tmp_path / "two", resume=run.id, steps=25)])
    finished([start(tmp_path / "one", resume=alone["run"], steps=25)])
    assert distance(values(tmp_path / "two", 25), values(tmp_path / "one", 25)) < 1e-4


@pytest.mark.slow
def test_a_worker_that_dies_ends_the_job_and_resume_is_exact(tmp_path, start) -> None:
    """First the chief is killed, then the other one."""
    jobs = start_two(start, tmp_path / "killed", "pretrain.checkpoint_minutes=0.001")
    folder = wait_for_steps(tmp_path / "killed", jobs[0])
    for killed, status in ((0, "crashed"), (1, "failed")):
        saved = latest(folder)
        while latest(folder) == saved:
            assert jobs[killed].poll() is None, jobs[killed].communicate()[1]
            time.sleep(0.1)
        jobs[killed].kill()
        out, err = jobs[1 - killed].communicate(timeout=300)  # no hang
        assert jobs[1 - killed].returncode == 1 and out == ""
        assert "Traceback" not in err
        last = err.splitlines()[-1]
        assert f"worker {1 - killed} has lost worker {killed} (localhost:" in last
        assert "stands at step " in last and f"--resume {folder.name}" in last
        jobs[killed].communicate()
        (run,) = list_runs(tmp_path / "killed" / "runs")
        assert run.status == status
        steps = latest(folder) + 10
        jobs = start_two(start, tmp_path / "killed", resume=folder.name, steps=steps if killed else None)
    finished(jobs)
    finished(start_two(start, tmp_path / "straight", steps=steps))
    assert distance(values(tmp_path / "killed", steps), values(tmp_path / "straight", steps)) == 0


def latest(folder: Path) -> int:
    return max(int(path.stem.removeprefix("step-")) for path in (folder / checkpoint.FOLDER).glob("step-*.json"))


@pytest.mark.slow
@pytest.mark.parametrize("asked", [0, 1])
def test_a_signal_to_one_worker_stops_all_at_one_step_with_a_model(tmp_path, start, asked) -> None:
    jobs = start_two(start, tmp_path)
    folder = wait_for_steps(tmp_path, jobs[0])
    jobs[asked].send_signal(signal.SIGTERM)
    documents = []
    for job in jobs:
        out, err = job.communicate(timeout=300)
        assert job.returncode == 130 and "Traceback" not in err, err
        documents.append(json.loads(out))
    assert documents[0]["stopped"] and documents[0]["steps"] == documents[1]["steps"]
    (run,) = list_runs(tmp_path / "runs")
    assert run.status == ("killed" if asked == 0 else "stopped")
    assert load_model(folder / "model").card["steps"] == documents[0]["exported_step"]


def test_a_wrong_tf_config_stops_before_anything_is_written(tmp_path, start) -> None:
    job = start(tmp_path, environment={"TF_CONFIG": "{"})
    out, err = job.communicate(timeout=300)
    assert (job.returncode, out) == (2, "")
    assert len(err.splitlines()) == 1 and "TF_CONFIG is not valid JSON" in err
    assert not (tmp_path / "runs").exists() and not (tmp_path / "cache").exists()


@pytest.mark.slow
def test_a_taken_port_is_told_in_one_line(tmp_path, start) -> None:
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        taken.listen()
        workers = [f"localhost:{taken.getsockname()[1]}", f"localhost:{free_ports(1)[0]}"]
        document = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": 0}}
        job = start(tmp_path, environment={"TF_CONFIG": json.dumps(document)})
        _, err = job.communicate(timeout=300)
    assert job.returncode == 2 and "Traceback" not in err
    assert f"worker 0 cannot listen to {workers[0]}" in err.splitlines()[-1]
