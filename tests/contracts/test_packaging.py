"""What the package says of itself: every import is declared, one version, and how it is started."""

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import toolkit

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("toolkit", "tasks", "dashboard")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Imported where it is installed, or in a comment's words: each is an extra.
EXTRAS = ("zh", "ray")


def distribution(requirement: str) -> str:
    """Return the normalised name of a requirement."""
    return re.match(r"[\w.-]+", requirement).group().lower().replace("_", "-")


def imported() -> dict[str, str]:
    """Return the top-level modules that the packages import, each with a file that does."""
    found: dict[str, str] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    names = [node.module]
                else:
                    continue
                for name in names:
                    found.setdefault(name.split(".")[0], str(path.relative_to(ROOT)))
    return found


def test_every_import_is_declared() -> None:
    extras = [one for name in EXTRAS for one in PROJECT["optional-dependencies"][name]]
    declared = {distribution(one) for one in [*PROJECT["dependencies"], *extras]}
    homes = importlib.metadata.packages_distributions()
    missing = {}
    for module, file in imported().items():
        if module in sys.stdlib_module_names or module in PACKAGES:
            continue
        owners = {name.lower().replace("_", "-") for name in homes.get(module, [module])}
        if not owners & declared:
            missing[module] = file
    assert not missing, missing


def test_the_version_is_written_once() -> None:
    assert "version" not in PROJECT and "version" in PROJECT["dynamic"]
    for start in (["-m", "toolkit"], ["-m", "toolkit.cli.main"]):
        done = subprocess.run([sys.executable, *start, "--version"], capture_output=True, text=True, check=True)
        assert done.stdout == f"elmo-toolkit {toolkit.__version__}\n"
