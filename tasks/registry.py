"""Finding tasks: every file of this folder that sets `TASK`."""

import functools
import importlib
import pkgutil

import tasks
from tasks.task import Task
from toolkit.errors import UsageError, did_you_mean


@functools.cache
def all_tasks() -> dict[str, Task]:
    """Return the tasks by name, sorted.

    Raises:
        ValueError: a task is not called as its file is.
    """
    found: dict[str, Task] = {}
    for info in sorted(pkgutil.iter_modules(tasks.__path__), key=lambda info: info.name):
        task = None if info.ispkg else getattr(importlib.import_module(f"tasks.{info.name}"), "TASK", None)
        if task is None:
            continue
        if task.name != info.name:
            raise ValueError(f"tasks/{info.name}.py holds a task called {task.name!r}: name both alike")
        found[task.name] = task
    return found


def find_task(name: str) -> Task:
    """Return the task of a name.

    Raises:
        UsageError: there is none; the message names the nearest.
    """
    known = all_tasks()
    if name not in known:
        raise UsageError(f"unknown task {name!r}: {did_you_mean(name, known)}")
    return known[name]
