"""Every command has help and examples that work; `--json` is one document; config.toml lists every setting."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import typer
from stores import evaluate_run
from typer.testing import CliRunner, Result

from toolkit.cli.frame import EXAMPLES
from toolkit.cli.main import app
from toolkit.config import Settings, flatten, resolve

ROOT = Path(__file__).resolve().parents[2]
SERVERS = ("toolkit dashboard",)  # they run until Ctrl-C

PLACES = ("river", "canal", "lake", "stream")
FIRMS = ("merchant", "widow", "baker", "farmer")
FRAMES = {
    ("bank", "shore"): "They sat on the bank of the {place} and watched the water .",
    ("bank", "money"): "The {firm} went to the bank and asked for more money .",
    ("spring", "season"): "In spring the {firm} walks along the {place} again .",
    ("spring", "water"): "A cold spring above the {place} gives the {firm} water .",
}


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its words, groups resolved."""

    def walk(command: click.Command, words: str) -> Iterator[tuple[str, click.Command]]:
        if not hasattr(command, "commands"):
            yield words, command
            return
        for name, child in command.commands.items():
            yield from walk(child, f"{words} {name}")

    yield from walk(typer.main.get_command(app), "toolkit")


COMMANDS = dict(commands())


def command_of(example: str) -> str:
    """Return the words of the command that an example calls."""
    return max((words for words in COMMANDS if f"{example} ".startswith(f"{words} ")), key=len, default="")


def sentences() -> list[tuple[str, str, str]]:
    """Word, sense, tokenised sentence."""
    return [
        (word, sense, frame.format(place=place, firm=firm))
        for place in PLACES
        for firm in FIRMS
        for (word, sense), frame in FRAMES.items()
    ]


def write_texts(folder: Path) -> None:
    """Write what the examples read: corpus.txt, sentences.txt, words.tsv and data/sst2."""
    rows = sentences()
    tokenised = list(dict.fromkeys(text for _, _, text in rows))
    raw = [text.replace(" .", ".") for text in tokenised]
    paragraphs = [" ".join(raw[(i * step) % len(raw)] for step in (1, 3, 7)) for i in range(300)]
    (folder / "corpus.txt").write_text("\n\n".join(paragraphs) + "\n")
    (folder / "sentences.txt").write_text("\n".join(tokenised[:20]) + "\n")
    table = [f"{word}\t{text.lower().split().index(word)}\t{sense}\t{text}" for word, sense, text in rows]
    (folder / "words.tsv").write_text("\n".join(["word\tposition\tsense\tsentence", *table]) + "\n")
    (folder / "data" / "sst2").mkdir(parents=True)
    for part, size in (("train", 64), ("dev", 16), ("test", 24)):
        lines = [f"{i % 2} a {'good' if i % 2 else 'bad'} film number {part} {i}" for i in range(size)]
        (folder / "data" / "sst2" / f"stsa.binary.{part}").write_text("\n".join(lines) + "\n")


def run(line: str) -> Result:
    return CliRunner().invoke(app, shlex.split(line)[1:], catch_exceptions=False)


def checked(line: str) -> Result:
    result = run(line)
    assert result.exit_code == 0, f"{line}\n{result.stdout}\n{result.stderr}"
    return result


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that the examples start from, with a biLM that was really trained for a few steps."""
    folder = tmp_path_factory.mktemp("examples")
    write_texts(folder)
    for name, mix in (("run-a", "none"), ("run-b", "learned")):
        evaluate_run(folder / "runs", name, mix=mix, n=60)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("TOOLKIT_CACHE", str(folder / "cache"))
        small = "--preset tiny --set pretrain.batch_size=8 --set model.dim=32 --set model.projection_dim=16"
        trained = checked(f"toolkit pretrain --corpus corpus.txt --steps 4 {small} --name run-pretrain --json")
        shutil.copytree(json.loads(trained.stdout)["model"], folder / "model")
        checked("toolkit senses index model --tsv words.tsv --name run-senses")
    return folder


@pytest.fixture
def workplace(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the prepared folder, which is the working folder for one test."""
    folder = tmp_path / "work"
    shutil.copytree(prepared, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TOOLKIT_CACHE", str(folder / "cache"))
    return folder


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_says_what_it_does_and_shows_two_examples(words: str):
    command = COMMANDS[words]
    assert command.help and len(command.help.split()) >= 4
    assert sum(command_of(example) == words for example in EXAMPLES) == 2
    assert {"--json", "--debug", "--config", "--set"} <= {name for p in command.params for name in p.opts}
    for parameter in command.params:
        assert getattr(parameter, "help", None), f"{words}: {parameter.name} has no help text"
    shown = run(f"{words} --help")
    assert shown.exit_code == 0
    text = " ".join(shown.stdout.split())
    for example in EXAMPLES:
        if command_of(example) == words:
            assert example in text


def test_every_example_belongs_to_a_command():
    assert [example for example in EXAMPLES if not command_of(example)] == []


def test_the_start_page_names_every_command():
    text = run("toolkit --help").stdout
    assert [words for words in COMMANDS if words.split()[1] not in text] == []


def lines_to_run() -> list[str]:
    """Every example, and for a command whose examples do without --json the first one with it."""
    lines = [example for example in EXAMPLES if command_of(example) not in SERVERS]
    with_json = {command_of(line) for line in lines if "--json" in line}
    first = {command_of(line): line for line in reversed(lines)}
    return lines + [f"{line} --json" for words, line in first.items() if words not in with_json]


@pytest.mark.slow
@pytest.mark.parametrize("line", lines_to_run())
def test_the_example_works(line: str, workplace: Path):
    result = checked(line)
    assert result.stdout.strip()
    if "--json" in line:
        json.loads(result.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("example", [example for example in EXAMPLES if command_of(example) in SERVERS])
def test_a_server_answers_until_it_is_stopped(example: str, workplace: Path):
    found = re.search(r"--port (\d+)", example)
    port = int(found.group(1)) if found else 8501
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            pytest.skip(f"port {port} is in use on this machine")
    line = [sys.executable, "-m", "toolkit.cli.main", *shlex.split(example)[1:]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, process_group=0
    )
    try:
        assert wait_for(f"http://127.0.0.1:{port}/_stcore/health", process) == "ok"
    finally:
        os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does: to the whole group
        process.communicate(timeout=30)
    assert process.returncode in (0, 130)


def wait_for(url: str, process: subprocess.Popen, seconds: float = 90) -> str:
    for _ in range(int(seconds * 5)):
        assert process.poll() is None, "the server ended by itself"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.read().decode()
        except urllib.error.URLError:
            time.sleep(0.2)
    return "no answer"


def test_an_error_is_one_line_and_no_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for line, code in {
        "toolkit runs show nothing --json": 2,
        "toolkit config show --set pretrain.sead=3 --json": 2,
        "toolkit inspect nothing --json": 2,
    }.items():
        result = run(line)
        assert (result.exit_code, result.stdout) == (code, ""), line
        assert len(result.stderr.splitlines()) == 1 and result.stderr.startswith("toolkit: ")


def listed(text: str, commented: bool) -> dict[str, object]:
    """Return the settings of config.toml by dotted key: the live ones, or those behind a #."""
    if commented:
        lines = text.splitlines()
        text = "\n".join(
            line.removeprefix("# ") if re.match(r"# \w+ = ", line) else line if line.startswith("[") else ""
            for line in lines
        )
    return flatten(tomllib.loads(text))


def test_config_toml_lists_every_setting_with_its_default():
    text = (ROOT / "config.toml").read_text(encoding="utf-8")
    live, commented = listed(text, commented=False), listed(text, commented=True)
    defaults = flatten(Settings().model_dump(mode="json"))
    assert set(live) | set(commented) == set(defaults)
    assert not set(live) & set(commented)
    for key, value in live.items():
        assert value == defaults[key], key
    for line in text.splitlines():
        if re.match(r"(# )?\w+ = ", line):
            assert re.search(r"\S\s+# \S", line), f"no comment: {line}"


def test_every_commented_line_of_config_toml_works_when_taken_up(tmp_path: Path):
    text = re.sub(r"^# (\w+ = )", r"\1", (ROOT / "config.toml").read_text(encoding="utf-8"), flags=re.MULTILINE)
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    resolved = resolve(tmp_path / "config.toml", environment={})
    assert set(resolved.sources.values()) == {str(tmp_path / "config.toml")}
