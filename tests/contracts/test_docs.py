"""The documents say what the program does: the command reference, the README's commands and pictures, links."""

import ast
import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from toolkit.cli.frame import EXAMPLES
from toolkit.cli.main import app
from toolkit.config import PRESETS

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
COMMAND = re.compile(r"(?<![\w/.-])toolkit ((?:[a-z-]+ ?)+)")


def reference():
    spec = importlib.util.spec_from_file_location("cli_reference", ROOT / "scripts" / "cli_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_command_reference_is_that_of_the_commands() -> None:
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == reference().reference()


def test_every_command_that_the_readme_types_exists() -> None:
    known = {" ".join(words) for words in reference().commands()}
    code = "\n".join(re.findall(r"```\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL))
    typed = [match[1].split() for match in COMMAND.finditer(code)]
    assert len(typed) >= 5
    for words in typed:
        assert words[0] in known or " ".join(words[:2]) in known, words


def in_code_blocks(text: str) -> list[str]:
    """Return the command lines of fenced and indented blocks: continued lines joined, no comments, no variables."""
    text = text.replace("\\\n", " ")
    blocks = re.findall(r"^```[a-z]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE) + re.findall(r"^ {4}.*$", text, re.M)
    found = re.findall(r"^(?:.*# or: |\s*(?:exec |\$ )?)(toolkit [a-z].*)$", "\n".join(blocks), re.MULTILINE)
    return [re.sub(r"\s+#.*|\$\w+", "", line).strip() for line in found]


def in_sentences(text: str) -> list[str]:
    """Return what sentences show as commands, the first of alternatives: no more than a part of a line, maybe."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    found = []
    for span in re.findall(r"`(toolkit [^`]+)`", text):
        words = re.sub(r"[\[\]…]", " ", span).split()
        found.append(" ".join(word.split("|")[0] for word in words))
    return found


def in_the_dashboard(path: Path) -> list[str]:
    """Return the texts of a page that are command lines."""
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    texts = [node.value for node in tree if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    found = [text for text in texts if text.startswith("toolkit ")]
    return found + [span for text in texts for span in in_sentences(text)]


def parsed(line: str) -> None:
    """Let the real parser read a command line, as far as the command's own function; a placeholder is a number, too."""
    command, words = COMMAND_LINE, shlex.split(line)[1:]
    while hasattr(command, "commands") and words:
        name = words.pop(0)
        assert name in command.commands, line
        command = command.commands[name]
    words = ["1" if word in ("N", "M") else word for word in words]
    if not hasattr(command, "commands"):
        command.make_context(line, words)


TEXTS = {path.name: path.read_text(encoding="utf-8") for path in DOCUMENTS}
# The reference breaks its examples into lines of a terminal: they are taken from where they come from.
SHOWN = {line for name, text in TEXTS.items() if name != "cli.md" for line in in_code_blocks(text)}
PARTS = {line for name, text in TEXTS.items() if name != "CHANGELOG.md" for line in in_sentences(text)}
PAGES = {line for path in (ROOT / "dashboard").rglob("*.py") for line in in_the_dashboard(path)}
COMMAND_LINE = typer.main.get_command(app)
USAGE_ERROR = typer.BadParameter.__base__  # typer has brought its own click since 0.20


def test_command_lines_are_found_in_every_kind_of_text() -> None:
    assert len(SHOWN) >= 10 and len(PARTS) >= 15 and len(PAGES) >= 5


@pytest.mark.parametrize("line", sorted({*SHOWN, *EXAMPLES, *PAGES}))
def test_a_command_line_that_is_shown_can_be_typed(line: str) -> None:
    parsed(line)


@pytest.mark.parametrize("line", sorted(PARTS))
def test_a_part_of_a_command_line_in_a_sentence_has_words_that_exist(line: str) -> None:
    try:
        parsed(line)
    except USAGE_ERROR as error:  # a sentence need not name every argument, nor the value of the option it is about
        assert type(error).__name__ == "MissingParameter" or "requires an argument" in error.message, error.message


@pytest.mark.parametrize("line", ["toolkit vocabulary", "toolkit runs list --nought", "toolkit runs list more"])
def test_a_command_line_that_does_not_exist_is_noticed(line: str) -> None:
    with pytest.raises((AssertionError, USAGE_ERROR)):
        parsed(line)


@pytest.mark.parametrize("number", [0, 1])
def test_the_readmes_python_runs(number: int, scoring_model: Path, tmp_path: Path) -> None:
    shutil.copytree(scoring_model, tmp_path / "first")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    done = subprocess.run([sys.executable, "-c", blocks[number]], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert ("(3, 6, 16)\n(2, 8)\n" in done.stdout) if number == 0 else (tmp_path / "net.keras").exists()


def test_the_demo_types_only_commands_that_exist() -> None:
    known = {" ".join(words) for words in reference().commands()}
    script = (ROOT / "scripts" / "demo.sh").read_text(encoding="utf-8")
    typed = re.findall(r"^say toolkit ([a-z-]+)(?: ([a-z-]+))?", script, re.MULTILINE)
    assert len(typed) >= 5
    for first, second in typed:
        assert first in known or f"{first} {second}" in known


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), target


def test_the_readme_names_every_preset() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(preset in readme for preset in PRESETS)
