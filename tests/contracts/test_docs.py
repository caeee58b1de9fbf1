"""The documents say what the program does: the command reference, the README's commands and pictures, links."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
