"""Run folders as damage, other programs and other machines leave them: one row each, the rest of the store is read."""

import json
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest
from stores import evaluate_run, start_pretrain

from toolkit.runs import schema
from toolkit.runs.lock import FILE, RunLock

DEEP, LONG = "[" * 100_000, "9" * 6000


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store of two finished runs, which the tests copy."""
    store = tmp_path_factory.mktemp("written") / "runs"
    for name in ("even", "odd"):  # of one configuration: the last one is in the table
        evaluate_run(store, name, n=20)
    return store


@pytest.fixture
def odd(written: Path, tmp_path: Path) -> Path:
    """Return the folder of one of two runs in the store of the `toolkit` fixture."""
    shutil.copytree(written, tmp_path / "runs")
    (folder,) = (tmp_path / "runs").glob("*-odd-s1")
    return folder


def changed(**keys: object) -> object:
    """Return a change of run.json: a JSON value, or a text to be put there as it is."""

    def change(folder: Path) -> None:
        path = folder / schema.MANIFEST
        text = json.dumps(json.loads(path.read_text()) | {key: f"@{key}@" for key in keys})
        for key, value in keys.items():
            text = text.replace(f'"@{key}@"', value if isinstance(value, str) else json.dumps(value))
        path.write_text(text)

    return change


def content(name: str, text: str | bytes) -> object:
    data = text.encode() if isinstance(text, str) else text
    return lambda folder: (folder / name).write_bytes(data)


def a_folder(name: str) -> object:
    def change(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).mkdir()

    return change


def score(text: str) -> object:
    return content(schema.RESULTS, f'{{"metrics": [{{"name": "accuracy", "split": "test", {text}}}]}}')


UNREADABLE = {
    "run.json nested": content(schema.MANIFEST, DEEP),
    "run.json of braces": content(schema.MANIFEST, '{"a":' * 100_000),
    "run.json number": content(schema.MANIFEST, LONG),
    "run.json empty": content(schema.MANIFEST, ""),
    "run.json null": content(schema.MANIFEST, "null"),
    "run.json list": content(schema.MANIFEST, "[]"),
    "run.json UTF-16": content(schema.MANIFEST, "{}".encode("utf-16")),
    "run.json folder": a_folder(schema.MANIFEST),
    "seconds_left": changed(seconds_left="Infinity"),
    "progress": changed(progress="NaN"),
    "progress beyond a float": changed(progress="1e999"),
    "heartbeat_seconds": changed(heartbeat_seconds="-Infinity"),
    "seed of 6,000 digits": changed(seed=LONG),
    "seed of 30 digits": changed(seed="9" * 30),
    "seed null": changed(seed=None),
    "pid negative": changed(pid=-1),
    "pid huge": changed(pid=10**12),
    "pid text": changed(pid='"me"'),
    "started text": changed(started='"yesterday"'),
    "started far": changed(started='"9999-12-31T23:59:59+00:00"'),
    "ended text": changed(ended='"soon"'),
    "ended number": changed(ended=7),
    "name null": changed(name=None),
    "name half a pair": changed(name='"\\ud800"'),
    "extra list": changed(extra=[]),
    "extra nested": changed(extra='{"a":' * 500 + "1" + "}" * 500),
    "status number": changed(status=1),
}
WITH_A_PROBLEM = {
    "results nested": content(schema.RESULTS, DEEP),
    "results number": content(schema.RESULTS, LONG),
    "results null": content(schema.RESULTS, "null"),
    "results folder": a_folder(schema.RESULTS),
    "score NaN": score('"value": NaN'),
    "score inf": score('"value": Infinity'),
    "score 1e999": score('"value": 1e999'),
    "score text": score('"value": "high"'),
    "score list": score('"value": [0.5]'),
    "score low NaN": score('"value": 0.5, "low": NaN, "high": 1'),
    "score n huge": score('"value": 0.5, "n": ' + "9" * 40),
    "results metrics null": content(schema.RESULTS, '{"metrics": null}'),
    "notes nested": content(schema.NOTES, DEEP),
    "notes number": content(schema.NOTES, LONG),
    "notes folder": a_folder(schema.NOTES),
    "notes tags": content(schema.NOTES, '{"tags": 7}'),
}
IN_OTHER_FILES = {
    "config nested": content(schema.CONFIG, "a = " + DEEP),
    "config number": content(schema.CONFIG, f"[evaluate]\nseed = {LONG}"),
    "config date": content(schema.CONFIG, "[evaluate]\nseed = 2020-01-01"),
    "config nan": content(schema.CONFIG, "[evaluate]\nmix_l2 = nan"),
    "config outside": content(schema.CONFIG, "seed = 1"),
    "config folder": a_folder(schema.CONFIG),
    "layers null": content(schema.LAYERS, "null"),
    "layers text": content(schema.LAYERS, '[{"weights": ["a"]}]'),
    "metrics nested": content(schema.METRICS, DEEP + "\n"),
    "metrics number": content(schema.METRICS, f'{{"name": "a", "split": "b", "value": {LONG}}}\n'),
    "metrics folder": a_folder(schema.METRICS),
    "log folder": a_folder(schema.LOG),
    "predictions folder": a_folder(schema.PREDICTIONS),
}


@pytest.mark.parametrize("damage", UNREADABLE)
def test_a_run_that_cannot_be_read_is_one_row(toolkit, odd, damage) -> None:
    UNREADABLE[damage](odd)
    rows = {row["run"]: row for row in json.loads(toolkit("runs", "list", "--json").out)}
    assert rows.pop(odd.name)["status"] == schema.UNREADABLE
    assert [(row["status"], row["problem"]) for row in rows.values()] == [("done", "")]
    toolkit("runs", "show", odd.name, "--json").worked(schema.UNREADABLE, schema.MANIFEST)


@pytest.mark.parametrize("damage", WITH_A_PROBLEM)
def test_a_damaged_file_is_the_problem_of_its_run_alone(toolkit, odd, damage) -> None:
    WITH_A_PROBLEM[damage](odd)
    rows = {row["run"]: row for row in json.loads(toolkit("runs", "list", "--json").out)}
    assert damage.split()[0].replace("score", "results") in rows.pop(odd.name)["problem"]
    assert [(row["status"], row["problem"]) for row in rows.values()] == [("done", "")]
    toolkit("runs", "show", odd.name, "--json").worked('"problem"')


@pytest.mark.parametrize("damage", IN_OTHER_FILES)
def test_no_file_of_a_run_takes_a_command_down(toolkit, odd, damage) -> None:
    IN_OTHER_FILES[damage](odd)
    toolkit("runs", "list").worked(odd.name)
    shown = toolkit("runs", "show", odd.name, "--json")
    shown.worked('"run"')
    if damage.startswith("config"):
        assert schema.CONFIG in json.loads(shown.out)["problem"]
    toolkit("runs", "table", "--json").worked("even" if damage.startswith("config") else "odd")


@pytest.mark.parametrize("column", ["gold", "predicted", "example_id", "split"])
@pytest.mark.parametrize("values", [list(range(20)), [None] * 20, [0.5] * 20], ids=["numbers", "nothing", "shares"])
def test_predictions_that_are_no_texts_are_remarked_in_the_table(toolkit, odd, column, values) -> None:
    path = odd / schema.PREDICTIONS
    pd.read_parquet(path).assign(**{column: values}).to_parquet(path)
    toolkit("runs", "table", "--json").worked(f"the column {column} holds values")


@pytest.mark.parametrize("text", ["dd-s1", "odd-s", "od", "s1", "-s1", "*", "..", "/", "", "\x00", "a" * 500])
def test_rm_removes_nothing_for_a_part_of_a_name(toolkit, odd, text) -> None:
    toolkit("runs", "rm", "--", text).refused("" if len(text) > 255 else "no run")
    assert odd.is_dir() and len(list(odd.parent.iterdir())) == 2


def test_rm_of_a_beginning_that_fits_two_names_both(toolkit, odd) -> None:
    toolkit("runs", "rm", odd.name[:4]).refused("fits 2 runs", odd.name)
    assert len(list(odd.parent.iterdir())) == 2


def silent(folder: Path, hours: float, host: str = "elsewhere") -> None:
    heartbeat = (datetime.now(UTC) - timedelta(hours=hours)).isoformat(timespec="seconds")
    changed(status='"running"', ended=None, host=f'"{host}"', heartbeat=f'"{heartbeat}"')(folder)


def test_a_run_of_another_host_is_stalled_first_and_crashed_after_an_hour(toolkit, odd) -> None:
    silent(odd, 0.2)
    toolkit("runs", "list").worked(schema.STALLED)
    toolkit("runs", "rm", odd.name).refused("12 minutes ago", "elsewhere", "cannot be looked up", "--force")
    silent(odd, 5)
    toolkit("runs", "show", odd.name).worked(schema.CRASHED, "5 hours ago", "elsewhere")
    toolkit("runs", "rm", odd.name).worked("removed")
    assert not odd.exists()


def test_rm_force_removes_a_run_of_another_host(toolkit, odd) -> None:
    silent(odd, 0.2)
    toolkit("runs", "rm", odd.name, "--force").worked("removed")
    assert len(list(odd.parent.iterdir())) == 1


def test_a_run_whose_lock_another_process_holds_is_not_removed(toolkit, odd) -> None:
    code = "import sys, time; from pathlib import Path; from toolkit.runs.lock import RunLock; "
    code += "lock = RunLock(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    holder = subprocess.Popen([sys.executable, "-c", code, str(odd)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    try:
        toolkit("runs", "rm", odd.name).refused("another process", "--force")
    finally:
        holder.kill()  # the operating system releases the lock
        holder.communicate()
    toolkit("runs", "rm", odd.name).worked("removed")


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        (schema.CONFIG, "[pretrain", "config.toml"),
        (schema.CONFIG, "[pretrain]\nsteps = " + DEEP, "config.toml"),
        (schema.CONFIG, "[pretrain]\nsteps = true", "config.toml"),
        (schema.CONFIG, "[other]\nprogram = 1", "config.toml"),
        (schema.CONFIG, "steps = 1", "config.toml"),
        (schema.MANIFEST, "{", "run.json"),
        (schema.MANIFEST, DEEP, "run.json"),
        (None, None, "does not name the texts"),
    ],
)
def test_a_damaged_run_is_not_resumed(toolkit, tmp_path, name, text, part) -> None:
    with start_pretrain(tmp_path / "runs", "p", 3) as run:
        run.stop_gracefully()
    if name:
        (run.folder / name).write_text(text)
    toolkit("pretrain", "--resume", run.id).refused(run.id, part)


@pytest.mark.parametrize("how", ["living", "locked"])
def test_a_run_that_is_being_written_is_not_resumed(toolkit, tmp_path, how) -> None:
    run = start_pretrain(tmp_path / "runs", "p", 3)
    heartbeat = (datetime.now(UTC) - timedelta(hours=3)).isoformat(timespec="seconds")
    changed(heartbeat=f'"{heartbeat}"')(run.folder)
    if how == "living":  # of a version that had no locks
        run._lock.release()
        (run.folder / FILE).unlink()
    toolkit("runs", "list").worked(schema.STALLED)
    toolkit("pretrain", "--resume", run.id).refused(run.id, "stop it", "--force")
    with run:
        run.metric("loss", 1.0)
    RunLock(run.folder).release()
