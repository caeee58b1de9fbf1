"""The walls: which part may import which, where TensorFlow and Streamlit live, and what starts without them."""

import ast
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("toolkit", "tasks", "dashboard")

# Parts of toolkit that everybody may import; they import each other only.
BASE = {
    "errors",
    "files",
    "config",
    "stats",
    "metrics",
    "paired",
    "process",
    "progress",
    "memory",
    "hdf5",
    "localhdf5",
    "packages",
}
# What each other part may import besides itself and BASE.
MAY_IMPORT = {
    "text": set(),
    "bilm": {"text"},
    "runs": set(),
    "pretrain": {"embed", "runs", "bilm", "text"},
    "embed": {"runs", "bilm", "text"},
    "senses": {"embed", "runs", "bilm", "text"},
    "inspection": {"senses", "embed", "runs", "bilm", "text"},
    "__main__": {"cli"},
    "cli": {"pretrain", "embed", "senses", "runs", "bilm", "text", "inspection", "tasks"},
    "keras": {"embed", "bilm", "text"},
    "tasks": {"keras", "embed", "runs", "bilm", "text"},
    "dashboard": {"embed", "senses", "runs", "bilm", "text"},
}
BACKEND = "toolkit/bilm/backend.py"  # the one file that imports tensorflow; others take tf from it
TENSORFLOW = (
    "toolkit/bilm/",
    "toolkit/pretrain/",
    "toolkit/embed/encoder.py",
    "toolkit/embed/states.py",
    "toolkit/embed/tokens.py",
    "toolkit/embed/dump.py",
    "toolkit/embed/score.py",
    "toolkit/senses/occurrences.py",
    "toolkit/keras/",  # layers of Keras are made of its tensors
    "tasks/adapter/",
)
STREAMLIT = ("dashboard/",)


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of everything a file imports, inside functions too; `from a import b` gives a.b."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def part_of(name: str) -> str:
    """Return which part a dotted module name belongs to: "text" for toolkit.text.vocab, "tasks", "dashboard"."""
    words = name.split(".")
    return words[0] if words[0] != "toolkit" else words[1] if len(words) > 1 else ""


def violations(root: Path) -> list[str]:
    """Return one line for every import that goes the wrong way."""
    found = []
    for path in sorted(path for package in PACKAGES for path in (root / package).rglob("*.py")):
        file = path.relative_to(root).as_posix()
        part = part_of(file.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        for line, name in imports(path):
            if problem := _problem(file, part, name, root):
                found.append(f"{file}:{line} imports {name}: {problem}")
        if file.startswith("dashboard/") and path.stem in PACKAGES and path.stem != "dashboard":
            found.append(f"{file}: its name hides the package {path.stem} when Streamlit runs the folder")
    return found


def _problem(file: str, part: str, name: str, root: Path) -> str:
    package = name.split(".")[0]
    if name.startswith("."):
        return "imports are absolute, so that a file means the same wherever it is read from"
    if package in ("tensorflow", "keras", "tf_keras"):
        return "" if file == BACKEND else f"take tf from {BACKEND}"
    if package == "streamlit":
        return "" if file.startswith(STREAMLIT) else "streamlit belongs to dashboard/"
    if name == "toolkit.bilm.backend.tf":
        return "" if file.startswith(TENSORFLOW) else "TensorFlow has no place here"
    if package not in PACKAGES:
        return ""
    target = part_of(name)
    if target not in MAY_IMPORT and target not in BASE:  # from toolkit import __version__
        return "" if not (root / "toolkit" / f"{target}.py").is_file() else f"no rule for toolkit.{target}"
    if target == part or target in BASE:
        return ""
    if part == "":
        return "toolkit/__init__.py imports nothing of the toolkit"
    if part not in MAY_IMPORT and part not in BASE:
        return f"no rule for {part}"
    return "" if target in MAY_IMPORT.get(part, set()) else f"{part} may not import {target}"


def loaded_by(*code: str) -> set[str]:
    """Run code in a new process and return the top-level names of the modules that it loaded."""
    script = "\n".join([*code, "import sys; print(*{name.split('.')[0] for name in sys.modules}, file=sys.stderr)"])
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert result.returncode == 0, result.stderr
    return set(result.stderr.splitlines()[-1].split())


def test_imports_go_one_way():
    assert not (found := violations(ROOT)), "\n".join(found)


BAD = {
    "toolkit/text/vocab.py": ("from toolkit.bilm.spec import BiLMSpec", "text may not import bilm"),
    "toolkit/errors.py": ("import toolkit.text.vocab", "errors may not import text"),
    "toolkit/runs/reader.py": ("def f():\n    from toolkit.senses import neighbours", "runs may not import senses"),
    "toolkit/senses/neighbours.py": ("from toolkit.bilm.backend import tf", "TensorFlow has no place here"),
    "toolkit/embed/encoder.py": ("import tensorflow as tf", "take tf from"),
    "toolkit/cli/runs.py": ("import streamlit", "streamlit belongs to dashboard"),
    "toolkit/embed/models.py": ("from tasks import registry", "embed may not import tasks"),
    "toolkit/bilm/model.py": ("from . import spec", "imports are absolute"),
    "tasks/sst2.py": ("from toolkit.cli.frame import Report", "tasks may not import cli"),
    "tasks/adapter/fit.py": ("from toolkit import pretrain", "tasks may not import pretrain"),
    "dashboard/data.py": ("import tasks.registry", "dashboard may not import tasks"),
    "dashboard/tasks.py": ("", "hides the package tasks"),
    "toolkit/newpart.py": ("from toolkit.text.vocab import Vocabulary", "no rule for newpart"),
    "toolkit/cli/new.py": ("import toolkit.newpart", "no rule for toolkit.newpart"),
    "toolkit/__init__.py": ("from toolkit.text.vocab import Vocabulary", "imports nothing of the toolkit"),
}


def test_the_checker_finds_every_kind_of_wrong_import(tmp_path: Path):
    for file, (text, _) in BAD.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    found = {line.split(":")[0]: line for line in violations(tmp_path)}
    assert set(found) == set(BAD)
    for file, (_, message) in BAD.items():
        assert message in found[file]


def test_the_checker_accepts_what_is_allowed(tmp_path: Path):
    good = {
        "toolkit/senses/occurrences.py": "from toolkit.bilm.backend import tf\nfrom toolkit.embed import encoder",
        "toolkit/bilm/backend.py": "import tensorflow as tf",
        "toolkit/cli/tasks.py": "def f():\n    from tasks import registry\n    from toolkit import __version__",
        "dashboard/app.py": "import streamlit\nfrom dashboard import data\nfrom toolkit.senses import neighbours",
        "toolkit/files.py": "from toolkit.errors import DataError\nimport toolkit",
    }
    for file, text in good.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    assert violations(tmp_path) == []


def test_every_place_of_tensorflow_exists():
    assert [place for place in TENSORFLOW if not (ROOT / place).exists()] == []


COMMANDS = {
    "toolkit --help": "from toolkit.cli.main import app; app(['--help'], standalone_mode=False)",
    "toolkit runs list": "from toolkit.cli.main import app; app(['runs', 'list', '--json'], standalone_mode=False)",
    "the dashboard's data": "import dashboard.data",
    "neighbours": "import toolkit.senses.neighbours, toolkit.senses.describe, toolkit.inspection",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_what_must_start_fast_loads_no_tensorflow(name: str):
    loaded = loaded_by(COMMANDS[name])
    assert {"toolkit"} <= loaded and not {"tensorflow", "keras"} & loaded
    if name == "toolkit --help":
        assert not {"numpy", "pandas", "h5py", "sklearn", "streamlit", "pydantic"} & loaded


def test_help_starts_fast():
    """0.2 s on an idle machine; the bound is generous because tests share theirs."""
    times = []
    for _ in range(3):
        started = time.monotonic()
        subprocess.run([sys.executable, "-m", "toolkit.cli.main", "--help"], cwd=ROOT, check=True, capture_output=True)
        times.append(time.monotonic() - started)
    assert min(times) < 5, times
