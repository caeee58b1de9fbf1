"""The run store: what a run leaves behind, what a reader makes of it, and how runs are found and noted."""

import hashlib
import json
import math
import os
import socket
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stores import broken_runs, evaluate_run, full_store, settings_with, start_pretrain

from toolkit.config import Settings, flatten
from toolkit.errors import DataError, FormatError, UsageError
from toolkit.runs import schema
from toolkit.runs.describe import number, score_text
from toolkit.runs.find import find_run, find_runs
from toolkit.runs.lock import RunLock
from toolkit.runs.notes import Notes, archive, read_notes, write_notes
from toolkit.runs.reader import (
    derived_status,
    list_runs,
    load_run,
    read_layers,
    read_metrics,
    read_predictions,
    read_run,
    remove_run,
)
from toolkit.runs.settings_file import to_toml
from toolkit.runs.writer import LostRunError, RunWriter


def test_leaving_the_block_says_done_and_keeps_the_settings(tmp_path: Path) -> None:
    settings = settings_with(evaluate__mix="none")
    with RunWriter.start(tmp_path, "evaluate", "sst2 / none!", settings, 3, extra={"task": "sst2"}) as run:
        pass
    read = read_run(tmp_path, run.id)
    assert (read.summary.status, read.summary.name, read.summary.seed) == (schema.DONE, "sst2-none", 3)
    assert read.settings == {
        key: value for key, value in flatten(settings.model_dump(mode="json")).items() if value is not None
    }


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (DataError("line 3 is not UTF-8"), schema.FAILED, "line 3 is not UTF-8"),
        (ZeroDivisionError("a / 0"), schema.FAILED, "ZeroDivisionError: a / 0"),
        (KeyboardInterrupt(), schema.STOPPED, None),
    ],
)
def test_an_exception_sets_the_status_and_goes_on(
    tmp_path: Path, error: BaseException, status: str, message: str | None
) -> None:
    with pytest.raises(type(error)), RunWriter.start(tmp_path, "pretrain", "x", Settings(), 1):
        raise error
    (run,) = list_runs(tmp_path)
    assert run.status == status
    assert load_run(run.folder).manifest.get("message") == message


def test_a_graceful_stop_is_no_done(tmp_path: Path) -> None:
    with RunWriter.start(tmp_path, "pretrain", "x", Settings(), 1) as run:
        run.stop_gracefully()
    assert list_runs(tmp_path)[0].status == schema.STOPPED


def test_a_run_can_be_written_outside_the_main_thread(tmp_path: Path) -> None:
    def work() -> None:
        with RunWriter.start(tmp_path, "pretrain", "x", Settings(), 1):
            pass

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert list_runs(tmp_path)[0].status == schema.DONE


def test_values_that_are_not_finite_come_back_as_they_were(tmp_path: Path) -> None:
    with RunWriter.start(tmp_path, "pretrain", "x", Settings(), 1) as run:
        for value in (float("nan"), float("inf"), 1.5):
            run.metric("loss", value)
    values = read_metrics(run.folder)["value"].tolist()
    assert math.isnan(values[0])
    assert values[1:] == [float("inf"), 1.5]


def test_a_half_written_metrics_line_is_left_out(tmp_path: Path) -> None:
    with RunWriter.start(tmp_path, "pretrain", "x", Settings(), 1) as run:
        run.metric("loss", 1.0, step=1)
    with (run.folder / schema.METRICS).open("a") as file:
        file.write('{"name": "loss", "val')
    assert read_metrics(run.folder)["step"].tolist() == [1.0]


def test_predictions_with_an_id_twice_are_refused(tmp_path: Path) -> None:
    row = {"example_id": "a", "split": "test", "gold": "x", "predicted": "x", "probabilities": [1.0]}
    with RunWriter.start(tmp_path, "evaluate", "x", Settings(), 1) as run:
        with pytest.raises(ValueError, match="'a' stands twice"):
            run.predictions(pd.DataFrame([row, row]))
        run.predictions(pd.DataFrame([row, row | {"split": "dev"}]))
    assert len(read_predictions(run.folder)) == 2


def test_seeds_share_a_group_and_other_settings_do_not(tmp_path: Path) -> None:
    for name, mix, seed in (("a", "none", 1), ("b", "none", 2), ("c", "learned", 1)):
        evaluate_run(tmp_path, name, seed, 0.8, 20, mix=mix)
    groups = {run.name: run.group for run in list_runs(tmp_path)}
    assert groups["a-s1"] == groups["b-s2"] != groups["c-s1"]


def test_settings_of_other_kinds_leave_the_group_alone() -> None:
    other = settings_with(pretrain__batch_size=7)
    groups = [schema.group_of("evaluate", settings, "sst2", "m", "d") for settings in (Settings(), other)]
    assert groups[0] == groups[1]


def test_every_kind_of_damage_is_told_and_none_raises(tmp_path: Path) -> None:
    folders = broken_runs(tmp_path)
    runs = {run.folder: run for run in list_runs(tmp_path)}
    assert set(runs) == set(folders.values())  # a foreign folder and a file are no runs
    for kind, words in {
        "manifest-json": "run.json",
        "manifest-keys": "run.json",
        "newer": "schema version 99",
        "no-manifest": "run.json",
        "results": "results.json: 0.split",
        "notes": "notes.json",
    }.items():
        assert words in runs[folders[kind]].problem, kind
    unreadable = {kind for kind, folder in folders.items() if runs[folder].status == schema.UNREADABLE}
    assert unreadable == {"manifest-json", "manifest-keys", "newer", "no-manifest"}
    assert {runs[folders[kind]].name for kind in unreadable} == {f"broken-{kind}-s1" for kind in unreadable}
    assert "config.toml" in load_run(folders["config"]).summary.problem
    with pytest.raises(FormatError, match="not a readable Parquet"):
        read_predictions(folders["parquet"])


def test_damaged_layers_are_a_format_error(tmp_path: Path) -> None:
    folder = evaluate_run(tmp_path, n=20)
    (folder / schema.LAYERS).write_text('[{"step": 1}]')
    with pytest.raises(FormatError, match=r"layers\.json"):
        read_layers(folder)


@given(st.binary(max_size=60))
def test_any_bytes_as_a_manifest_are_told_not_raised(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    store = tmp_path_factory.mktemp("store")
    folder = store / "20260101T000000-pretrain-x"
    folder.mkdir()
    (folder / schema.MANIFEST).write_bytes(content)
    (run,) = list_runs(store)
    assert run.status == schema.UNREADABLE
    assert run.problem


def test_silence_makes_a_run_of_another_host_stalled_and_a_beat_brings_it_back() -> None:
    now = datetime.now(UTC)
    manifest = {"status": "running", "host": "elsewhere", "pid": 1, "process_started": "1", "heartbeat_seconds": 30.0}
    for silence, status in ((149, schema.RUNNING), (151, schema.STALLED)):
        heartbeat = (now - timedelta(seconds=silence)).isoformat()
        assert derived_status(manifest | {"heartbeat": heartbeat}, now, "here") == status


def test_a_later_process_with_the_same_number_is_not_taken_for_the_run(tmp_path: Path) -> None:
    run = start_pretrain(tmp_path, "x", 5)
    path = run.folder / schema.MANIFEST
    assert list_runs(tmp_path)[0].status == schema.RUNNING
    path.write_text(json.dumps(json.loads(path.read_text()) | {"process_started": "1"}))
    assert list_runs(tmp_path)[0].status == schema.CRASHED


@pytest.mark.parametrize("text", ["../outside", "/etc", ".", "", "a/b", ".hidden", "no-such-run"])
def test_no_text_leads_out_of_the_store(tmp_path: Path, text: str) -> None:
    (tmp_path / "store").mkdir()
    evaluate_run(tmp_path / "outside-store", n=20).rename(tmp_path / "outside")
    with pytest.raises(UsageError, match="no run"):
        read_run(tmp_path / "store", text)


def test_runs_are_found_by_id_its_beginning_name_and_group(tmp_path: Path) -> None:
    full_store(tmp_path)
    assert find_run(tmp_path, "sst2-none-s2").seed == 2
    assert find_run(tmp_path, "wiki-small").kind == "pretrain"
    assert [run.seed for run in find_runs(tmp_path, "sst2-learned")] == [1, 2, 3]
    with pytest.raises(UsageError, match="fits 3 runs"):
        find_run(tmp_path, "sst2-none")
    with pytest.raises(UsageError, match=r"near names: .*wiki-small"):
        find_run(tmp_path, "wiki-smal1")
    newest = list_runs(tmp_path)[0]
    assert find_run(tmp_path, newest.id[:15]) == newest
    with pytest.raises(UsageError, match="fits"):
        find_run(tmp_path, newest.id[:4])
    with pytest.raises(UsageError, match=r"these contain it.*sst2-none-s2"):
        find_runs(tmp_path, "sst2")


@pytest.mark.parametrize("text", ["bank1", "ank10", "-bank10", "0"])
def test_a_part_of_a_name_names_no_run(tmp_path: Path, text: str) -> None:
    folder = evaluate_run(tmp_path, "bank10", n=20)
    with pytest.raises(UsageError, match=folder.name):
        find_run(tmp_path, text)
    assert find_run(tmp_path, "bank10-s1").folder == folder


def test_a_writer_whose_run_was_taken_over_writes_nothing_more(tmp_path: Path) -> None:
    run = start_pretrain(tmp_path, "x", 3)
    with RunLock(run.folder, force=True) as lock:
        with RunWriter.resume(run.folder, Settings(), 3, lock) as second:
            manifest = json.loads((run.folder / schema.MANIFEST).read_text()) | {"pid": 1}
            (run.folder / schema.MANIFEST).write_text(json.dumps(manifest))
            second._manifest["pid"] = 1  # as if it were another process
            second.results({"metrics": []})
        before = {path: path.read_bytes() for path in run.folder.iterdir()}
        with pytest.raises(LostRunError, match="taken over by process 1 on"), run:
            run.results({"metrics": [{"name": "a", "split": "b", "value": 1.0}]})
    assert {path: path.read_bytes() for path in run.folder.iterdir()} == before


def test_a_writer_whose_run_was_removed_does_not_bring_it_back(tmp_path: Path) -> None:
    run = start_pretrain(tmp_path, "x", 3)
    remove_run(list_runs(tmp_path)[0], force=True)
    with pytest.raises(LostRunError, match="was removed"), run:
        pass
    assert not run.folder.exists()


def test_one_lock_for_each_run(tmp_path: Path) -> None:
    with RunWriter.start(tmp_path, "senses", "x", Settings(), 1) as run:
        with pytest.raises(UsageError, match="another process"):
            RunLock(run.folder)
        RunWriter.start(tmp_path, "senses", "y", Settings(), 1)
    RunLock(run.folder).release()


def test_what_killed_processes_left_is_swept_at_the_next_start(tmp_path: Path) -> None:
    folder, owner = evaluate_run(tmp_path, n=20), hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    gone = [tmp_path / f".run.tmp-{owner}-{dead.pid}-x", tmp_path / ".removing-old"]
    gone += [folder / f".occurrences.h5.tmp-{owner}-{dead.pid}", folder / "model" / f".weights.tmp-{owner}-{dead.pid}"]
    kept = [tmp_path / ".removing-new", folder / f".occurrences.h5.tmp-{owner}-{os.getpid()}"]
    for path in (*gone, *kept):
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    os.utime(tmp_path / ".removing-old", (0, 0))
    with RunWriter.start(tmp_path, "senses", "next", Settings(), 1):
        pass
    assert [path for path in gone if path.exists()] == []
    assert all(path.exists() for path in kept)


def test_no_number_that_is_not_finite_is_written(tmp_path: Path) -> None:
    with RunWriter.start(tmp_path, "pretrain", "x", Settings(), 1) as run:
        run.heartbeat(math.nan, math.inf)
        run.update()
        with pytest.raises(ValueError, match="not JSON compliant"):
            run.results({"metrics": [{"name": "a", "split": "b", "value": math.nan}]})
    assert list_runs(tmp_path)[0].problem == ""


def test_notes_are_cleaned_and_archiving_keeps_them(tmp_path: Path) -> None:
    folder = evaluate_run(tmp_path, n=20)
    write_notes(folder, Notes(tags=(" b", "a", "a", ""), note="why"))
    archive(folder)
    assert read_notes(folder) == Notes(tags=("a", "b"), note="why", archived=True)
    archive(folder, archived=False)
    assert list_runs(tmp_path)[0].notes == Notes(tags=("a", "b"), note="why")


def test_removing_a_finished_run_leaves_nothing(tmp_path: Path) -> None:
    evaluate_run(tmp_path, n=20)
    remove_run(list_runs(tmp_path)[0])
    assert list(tmp_path.iterdir()) == []


@given(st.text(max_size=20))
def test_settings_come_back_from_toml_whatever_the_text(text: str) -> None:
    import tomllib

    settings = settings_with(text__language=text)
    assert tomllib.loads(to_toml(settings))["text"]["language"] == text


def test_scores_read_as_value_and_half_width() -> None:
    score = {"name": "accuracy", "split": "test", "value": 0.812, "low": 0.794, "high": 0.83, "n": 1821}
    assert score_text(score) == "81.2 ± 1.8 (n = 1,821)"
    assert [number(value) for value in (0.01234, 81.23, 214.2, 20000)] == ["0.0123", "81.2", "214", "20,000"]


def test_five_hundred_runs_are_listed_in_less_than_two_seconds(tmp_path: Path) -> None:
    import shutil
    import time

    first = evaluate_run(tmp_path, n=20)
    manifest = json.loads((first / schema.MANIFEST).read_text())
    for i in range(499):
        folder = shutil.copytree(first, tmp_path / f"20200101T{i:06d}-evaluate-copy")
        (folder / schema.MANIFEST).write_text(json.dumps(manifest | {"id": folder.name}))
    start = time.perf_counter()
    assert len(list_runs(tmp_path)) == 500
    assert time.perf_counter() - start < 2
