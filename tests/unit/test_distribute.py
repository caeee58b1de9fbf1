"""Several replicas: what TF_CONFIG may say, who reads what, and that two devices train as one does."""

import inspect
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from toolkit.bilm.spec import BiLMSpec
from toolkit.config import Pretrain
from toolkit.errors import DataError, UsageError
from toolkit.pretrain.batches import Batches, Lexicon
from toolkit.pretrain.distribute import ALONE, Cluster, Replicas, cluster_from
from toolkit.runs.bystander import Bystander
from toolkit.runs.writer import RunWriter
from toolkit.text.vocab import BOS, EOS, UNK, Vocabulary

TWO = ["a:2222", "b:2222"]


def config(cluster: object = None, task: object = None) -> dict[str, str]:
    document = {"cluster": {"worker": TWO} if cluster is None else cluster}
    document["task"] = {"type": "worker", "index": 1} if task is None else task
    return {"TF_CONFIG": json.dumps(document)}


def test_workers_and_place_are_read_from_tf_config() -> None:
    assert cluster_from(config()) == Cluster(("a:2222", "b:2222"), 1)


@pytest.mark.parametrize("environment", [{}, {"TF_CONFIG": " "}, {"TF_CONFIG": "{}"}])
def test_without_tf_config_there_is_no_cluster(environment) -> None:
    assert cluster_from(environment) is None


def test_a_cluster_of_one_worker_is_one_machine() -> None:
    assert cluster_from(config({"worker": ["a:1"]}, {"type": "worker", "index": 0})) is None


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"TF_CONFIG": '{"cluster": '}, "not valid JSON"),
        ({"TF_CONFIG": "[]"}, "no list cluster.worker"),
        (config({}), "no list cluster.worker"),
        (config({"worker": []}), "no list cluster.worker"),
        (config({"worker": "a:1"}), "no list cluster.worker"),
        (config({"worker": ["a:1", 7]}), "worker 7 is not host:port"),
        (config({"worker": ["a:1", "b"]}), "worker 'b' is not host:port"),
        (config({"worker": ["a:1", "a:1"]}), "names a worker twice"),
        (config({"worker": TWO, "ps": ["c:1"]}), "the job 'ps'"),
        (config(task="worker"), "no task of the type 'worker'"),
        (config(task={"type": "chief", "index": 0}), "no task of the type 'worker'"),
        (config(task={"type": "worker"}), "task.index is None, there are the workers 0 to 1"),
        (config(task={"type": "worker", "index": 2}), "task.index is 2, there are the workers 0 to 1"),
        (config(task={"type": "worker", "index": "0"}), "task.index is '0'"),
        (config(task={"type": "worker", "index": True}), "task.index is True"),
    ],
)
def test_a_wrong_tf_config_is_one_line(environment, message) -> None:
    with pytest.raises(UsageError, match="TF_CONFIG") as caught:
        cluster_from(environment)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_a_bystander_writes_nothing(tmp_path) -> None:
    own = {name for name, _ in inspect.getmembers(RunWriter, inspect.isfunction) if name[0] != "_"}
    assert own <= vars(Bystander).keys()
    with Bystander(tmp_path / "run") as run:
        run.metric("loss", 1.0, 1)
        run.heartbeat(0.5)
        run.update(a=1)
        run.log("line")
        run.results({"metrics": []})
        run.stop_gracefully()
    assert run.id == "run" and list(tmp_path.iterdir()) == []


def test_workers_that_differ_are_told_apart(monkeypatch) -> None:
    replicas = Replicas()
    replicas.workers = tuple(TWO)
    monkeypatch.setattr(replicas, "everyone", lambda value: [value, {"text": "2"}])
    with pytest.raises(DataError, match=r"worker 1 \(b:2222\) has another text than worker 0: 2 and 1"):
        replicas.require_same({"text": "1"})


def test_one_process_talks_to_itself_and_keeps_its_clock() -> None:
    assert ALONE.everyone({"a": [1.5]}) == [{"a": [1.5]}]
    assert ALONE.from_chief(lambda: 7) == 7
    assert ALONE.clock(1.25) == 1.25
    assert ALONE.chief and ALONE.count == 1


def batches(reads_words: bool, rows: int, count: int = 1, members: range = range(1)) -> Batches:
    words = [f"w{i}" for i in range(40)]
    vocabulary = Vocabulary([BOS, EOS, UNK, *words[:30]])
    rng = np.random.default_rng(1)
    sentences = [rng.integers(0, 40, rng.integers(1, 9)) for _ in range(60)]
    starts = np.concatenate([[0], np.cumsum([len(s) for s in sentences])]).astype(np.int64)
    tokens = np.concatenate(sentences).astype(np.int32)
    stream = SimpleNamespace(tokens=tokens, starts=starts, n_sentences=len(sentences), n_tokens=len(tokens))
    n_words = len(vocabulary) if reads_words else None
    # P of 3 makes rows begin amid the four numbers that one draw of the generator gives.
    spec = BiLMSpec(4, ((1, 3), (3, 5)), 1, "relu", 20, 8, 3, 2, 3.0, 3.0, True, n_words)
    settings = Pretrain(batch_size=rows, unroll_steps=3, negatives=5, dropout=0.5, seed=3)
    lexicon = Lexicon.build(words, vocabulary, 0 if reads_words else 20)
    return Batches(stream, lexicon, len(vocabulary), spec, settings, count, members)


@pytest.mark.parametrize("reads_words", [False, True])
def test_each_replica_reads_its_rows_of_the_joined_batch(reads_words) -> None:
    whole = batches(reads_words, 6)
    parts = [batches(reads_words, 2, 3, range(0, 2)), batches(reads_words, 2, 3, range(2, 3))]
    for step in (0, 1, whole.steps_per_epoch + 1):
        joined = whole[step]
        shares = [share for part in parts for share in part.shares(step)]
        for name in ("rows", "sampled", "log_expected"):
            assert all(np.array_equal(getattr(share, name), getattr(joined, name)) for share in shares)
        assert np.array_equal(np.concatenate([s.kept for s in shares], 3), joined.kept)
        targets = [s.targets.reshape(2, 3, 2) for s in shares]
        assert np.array_equal(np.concatenate(targets, 2).reshape(2, -1), joined.targets)
        width = 1 if reads_words else 20
        read = [words_of(share, width) for share in shares]
        assert np.array_equal(np.concatenate(read, 2), words_of(joined, width))
        if reads_words:
            assert all(np.array_equal(share.groups[0], joined.groups[0]) for share in shares)


def words_of(batch, width: int) -> np.ndarray:
    """The characters, or the row of the word table, at each position [T, 2, B, width]."""
    groups = [group[:, None] if group.ndim == 1 else group for group in batch.groups]
    table = np.concatenate([np.pad(group, ((0, 0), (0, width - group.shape[1]))) for group in groups])
    return table[batch.inputs]


def launch_scripts() -> list[tuple[str, dict[str, str]]]:
    """The SLURM script and the pods' script of docs/distributed.md, each with what worker 1 finds around it."""
    text = (Path(__file__).parents[2] / "docs" / "distributed.md").read_text(encoding="utf-8")
    slurm = text.split("```bash\n")[1].split("```")[0]
    pod = textwrap.dedent(text.split("            - |\n")[1].split("          resources:")[0])
    return [
        (slurm, {"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_ID": "7", "SLURM_PROCID": "1", "RESUME": "run-x"}),
        (pod, {"WORKERS": "2", "JOB_COMPLETION_INDEX": "1"}),
    ]


@pytest.mark.parametrize("number", [0, 1], ids=["SLURM", "Kubernetes"])
def test_the_documented_launches_give_each_worker_its_tf_config(tmp_path, number) -> None:
    script, variables = launch_scripts()[number]
    tools = {
        "srun": 'exec "$@"',
        "scontrol": "echo n1; echo n2",
        "toolkit": f'printf "%s" "$TF_CONFIG" > {tmp_path}/found; echo "$@" > {tmp_path}/arguments',
    }
    for name, body in tools.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / name).chmod(0o755)
    environment = os.environ | variables | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-euc", script], check=True, env=environment, timeout=60)
    cluster = cluster_from({"TF_CONFIG": (tmp_path / "found").read_text()})
    workers = [("n1:20007", "n2:20007"), ("bilm-0.bilm:2222", "bilm-1.bilm:2222")][number]
    assert cluster == Cluster(workers, 1)
    arguments = (tmp_path / "arguments").read_text()
    assert arguments.startswith(["pretrain --resume run-x --set", "pretrain --corpus /data/text --preset"][number])


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "optimizer"), [("characters", "adam"), ("words", "adam"), ("words", "adagrad")])
def test_two_devices_train_as_one_does_on_the_joined_batch(shape, optimizer) -> None:
    """In a process of its own: TensorFlow's devices are set once."""
    script = Path(__file__).with_name("two_devices.py")
    command = [sys.executable, str(script), shape, optimizer]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["joined batch"] == 8 and found["steps"] == [20, 20]
    assert all(found[part] < 1e-4 for part in ("weights", "slots", "averages", "states")), found
    assert found["between replicas"] == 0
    assert found["moved"] > 1e-2  # there was something to compare
    assert found["put back"]
    assert found["not finite"] == {"norm": "nan", "changed": 0.0, "parts": True}
