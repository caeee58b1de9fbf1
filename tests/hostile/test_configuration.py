"""Configuration of other programs, and values that no setting can have: a note or one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from stores import evaluate_run

import toolkit as library
from toolkit.errors import UsageError

FOREIGN = {
    "an application": '[server]\nport = 80\n[database]\nurl = "x"\n',
    "a trainer with a model": '[model]\nname = "bert"\n[training]\nlr = 0.1\n',
    "keys alone": 'title = "site"\nbaseURL = "https://example.org"\n',
    "a section near ours": "[models]\nfirst = 1\n",
    "arrays of tables": "[[products]]\nname = 1\n",
    "not TOML": "port: 80\nhosts:\n  - a\n",
    "not TOML with sections": "[http]\nport = on\n",
    "binary": b"\x00\xff\xfe\x80" * 20,
    "nested": "x = " + "[" * 3000,
    "a long number": "x = " + "9" * 5000,
}
OURS = {
    "unknown key": ("[pretrain]\nsede = 3\n", "did you mean 'pretrain.seed'?"),
    "misspelt section": ("[pretrian]\nseed = 3\n", "did you mean 'pretrain.seed'?"),
    "ours and another": ("[pretrain]\nseed = 3\n[other]\nx = 1\n", "other.x"),
    "broken": ("[pretrain]\nseed = \n", "not valid TOML"),
    "nested": ("[model]\nfilters = " + "[" * 3000, "nested too deeply"),
    "a long number": ("[pretrain]\nsteps = " + "9" * 5000, "not valid TOML"),
    "true": ("[pretrain]\nseed = true\n", "not true or false"),
}
VALUES = {
    "pretrain.warmup_steps": ("true", "9" * 50),
    "pretrain.seed": ("true", "false", "9" * 30, "-" + "9" * 30),
    "pretrain.steps": ("true", "9" * 5000),
    "pretrain.minutes": ("inf", "nan", "1e999", "true"),
    "pretrain.epochs": ("inf", "-inf", "nan", "true"),
    "pretrain.clip_norm": ("inf", "true"),
    "pretrain.validate_minutes": ("inf",),
    "evaluate.mix_l2": ("inf", "nan", "true"),
    "evaluate.learning_rate": ("inf", "true"),
    "evaluate.mix": ("true", "[" * 3000),
    "embed.layers": ("true",),
    "model.filters": ("[[true, 8]]", "[[1, 8.5]]", "[" * 3000, "[[1, " + "9" * 5000 + "]]", "[[1, " + "9" * 30 + "]]"),
    "paths.runs": ("true", "3"),
    "paths.cache_bytes": ("true", "inf"),
    "senses.neighbours": ("true", "inf"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_configuration_of_another_program_is_left_alone(toolkit, tmp_path, caplog, kind) -> None:
    text = FOREIGN[kind]
    (tmp_path / "config.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    toolkit("runs", "list").worked("no runs")
    assert f"{tmp_path / 'config.toml'} has no se" in caplog.text
    toolkit("runs", "list", "--config", "config.toml").refused("config.toml")


@pytest.mark.parametrize("kind", OURS)
def test_a_mistake_in_our_configuration_is_refused(toolkit, tmp_path, kind) -> None:
    text, part = OURS[kind]
    (tmp_path / "config.toml").write_text(text)
    toolkit("runs", "list").refused("config.toml", part)


def test_a_folder_is_no_configuration(toolkit, tmp_path) -> None:
    (tmp_path / "config.toml").mkdir()
    toolkit("runs", "list").worked("no runs")
    toolkit("runs", "list", "--config", "config.toml").refused("config.toml")


@pytest.mark.parametrize("name", ["FOO", "HOME", "VERSION", "CACHE_DIR", "X__Y", "", "MODEL", "PRETRAIN"])
def test_a_variable_of_another_program_is_left_alone(toolkit, monkeypatch, caplog, name) -> None:
    monkeypatch.setenv(f"TOOLKIT_{name}", "1")
    toolkit("runs", "list").worked("no runs")
    assert f"TOOLKIT_{name} is no setting" in caplog.text or f"TOOLKIT_{name} is no setting" in NOTED
    NOTED.add(f"TOOLKIT_{name} is no setting")


NOTED: set[str] = set()  # notes are given once in a process


@pytest.mark.parametrize("name", ["PRETRAIN__SEDE", "PRETRIAN__SEED", "RUN", "PRETRAIN_SEED", "PRETRAIN__NOTHING"])
def test_a_misspelt_variable_of_ours_is_refused(toolkit, monkeypatch, name) -> None:
    monkeypatch.setenv(f"TOOLKIT_{name}", "1")
    toolkit("runs", "list").refused(f"TOOLKIT_{name}")


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in VALUES.items() for value in values])
def test_a_value_that_is_no_number_is_refused_in_a_line(toolkit, key, value) -> None:
    said = toolkit("config", "show", "--set", f"{key}={value}")
    said.refused(key, "--set")
    assert len(said.message) < 400


def test_python_code_reads_no_configuration_of_the_working_folder(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.toml").write_text("[pretrain]\nsede = 1\n")
    (tmp_path / "model").mkdir()
    with pytest.raises(Exception, match=r"options\.json is missing"):
        library.load_bilm(tmp_path / "model")
    with pytest.raises(UsageError, match="sede"):
        library.load_bilm("a-run")


LINE = [sys.executable, "-m", "toolkit.cli.main"]


@pytest.mark.parametrize(("more", "part"), [([], b"+/-"), (["--json"], b'"value"')], ids=["text", "json"])
def test_a_terminal_without_our_signs_gets_others(toolkit, tmp_path, more, part) -> None:
    evaluate_run(tmp_path / "runs", n=20)
    line = [sys.executable, "-m", "toolkit.cli.main", "runs", "list", *more]
    done = subprocess.run(line, capture_output=True, cwd=tmp_path, env=environment(PYTHONIOENCODING="ascii"))
    assert (done.returncode, done.stderr) == (0, b"")
    assert part in done.stdout and done.stdout.isascii()


@pytest.mark.parametrize(
    ("shell", "code", "parts"),
    [
        ("{line} config show >&-", 1, ["standard output is closed"]),
        ("{line} config show --set a.b=1 >&- 2>&-", 2, []),
        ("{line} config show 2>&-", 0, ["pretrain.seed"]),
        ("set -o pipefail; {line} config show | true", 1, []),
        ("{line} --help | true", None, []),
    ],
)
def test_a_stream_that_is_closed_is_no_traceback(toolkit, tmp_path, shell, code, parts) -> None:
    text = shell.format(line=f"{sys.executable} -m toolkit.cli.main")
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, cwd=tmp_path, env=environment())
    assert code is None or done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    assert len(done.stderr.splitlines()) == (1 if code == 1 and parts else 0), done.stderr
    for part in parts:
        assert part in done.stdout + done.stderr


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(library.__file__).parents[1]), **more}
