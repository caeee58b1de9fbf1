"""Finding tasks: every file of this folder, and of a folder of the user's, that sets `TASK`."""

import functools
import importlib
import importlib.util
import logging
import pkgutil
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import tasks
from tasks.task import Splits, Task
from toolkit.errors import UsageError, did_you_mean
from toolkit.files import fingerprint

logger = logging.getLogger(__name__)

OWN_DATA = "csv"  # the name under which `toolkit evaluate` takes a table of the user's
NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class Found:
    """The tasks of both folders.

    Attributes:
        tasks: by name, sorted.
        problems: what is wrong with a file of the user's folder, in one line, by the file's name without `.py`.
    """

    tasks: Mapping[str, Task]
    problems: Mapping[str, str]


def all_tasks(folder: Path | None = None) -> dict[str, Task]:
    """Return the tasks by name, sorted; log what is wrong with files of the user's folder, which are left out.

    Args:
        folder: task files of the user (`paths.tasks`).

    Raises:
        UsageError: there is no such folder.
        ValueError: a task of ours is not called as its file is.
    """
    found = discover(folder)
    for problem in found.problems.values():
        logger.warning("%s", problem)
    return dict(found.tasks)


def find_task(name: str, folder: Path | None = None) -> Task:
    """Return the task of a name.

    Raises:
        UsageError: there is none, with the nearest; or a file of the user's folder has that name and cannot be used.
    """
    found = discover(folder)
    if name in found.problems:
        raise UsageError(found.problems[name])
    if name not in found.tasks:
        raise UsageError(f"unknown task {name!r}: {did_you_mean(name, [*found.tasks, OWN_DATA])}")
    return found.tasks[name]


def discover(folder: Path | None = None) -> Found:
    """Find the tasks of both folders; errors as in `all_tasks`.

    A broken file of the user's folder takes no other file down, and none replaces a task of ours.
    """
    known, problems = dict(_ours()), {}
    for path in _files(folder):
        try:
            task = _task_of(path)
        except (Exception, SystemExit) as error:  # noqa: BLE001  the file is the user's: it may raise anything
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            problems[path.stem] = f"{path} cannot be used as a task: {reason}"
            continue
        if task is None:
            continue
        if path.stem in _ours() or path.stem == OWN_DATA:
            problems[path.stem] = f"{path} is called {path.stem!r}, as a task of the toolkit is: rename file and task"
        elif problem := _problem(path, task):
            problems[path.stem] = f"{path} cannot be used as a task: {problem}"
        else:
            known[task.name] = task
    return Found(dict(sorted(known.items())), problems)


def data_fingerprint(task: Task, splits: Splits) -> str:
    """Return 16 hexadecimal digits that name what a task asks: its examples, and its version, metric and labels.

    Of a task of ours in its first version the examples say all. A task file of the user can change its metric or its
    labels while the examples stay.
    """
    if task.version == 1 and _ours().get(task.name) is task:
        return splits.fingerprint
    return fingerprint([splits.fingerprint, task.version, task.metric, task.labels])


@functools.cache
def _ours() -> Mapping[str, Task]:
    found: dict[str, Task] = {}
    for info in pkgutil.iter_modules(tasks.__path__):
        task = None if info.ispkg else getattr(importlib.import_module(f"tasks.{info.name}"), "TASK", None)
        if task is None:
            continue
        if task.name != info.name:
            raise ValueError(f"tasks/{info.name}.py holds a task called {task.name!r}: name both alike")
        found[task.name] = task
    return found


def _files(folder: Path | None) -> list[Path]:
    if folder is None:
        return []
    folder = folder.expanduser()
    if not folder.is_dir():
        raise UsageError(f"no folder of tasks at {folder} (paths.tasks, working folder {Path.cwd()})")
    return sorted(path for path in folder.glob("*.py") if not path.name.startswith(("_", ".")))


@functools.cache
def _task_of(path: Path) -> object:
    """Run a file and return its `TASK`, None where it sets none; the module stays out of `sys.modules`."""
    spec = importlib.util.spec_from_file_location(f"own_tasks.{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, "TASK", None)


def _problem(path: Path, task: object) -> str:
    if not isinstance(task, Task):
        return f"its TASK is a {type(task).__name__}, not a tasks.task.Task"
    if task.name != path.stem:
        return f"its task is called {task.name!r}: name the file and the task alike"
    if not NAME.fullmatch(task.name):
        return f"{task.name!r} is no name for a task: use small letters, digits and _"
    return ""
