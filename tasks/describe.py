"""Tasks in words and as JSON documents."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.task import Task
from toolkit.errors import DataError
from toolkit.runs.describe import columns


def where(task: Task, data: Path | None, cache: Path) -> tuple[Path | None, str]:
    """Return where a task's data lies, and what is wrong with it: None where it is nowhere, "" where nothing is."""
    try:
        return task.find(data, cache), ""
    except DataError as error:
        return None, str(error)


def task_document(task: Task, data: Path | None, cache: Path) -> dict[str, Any]:
    """Return the JSON document of one task."""
    path, problem = where(task, data, cache)
    return {
        "task": task.name,
        "version": task.version,
        "title": task.title,
        "metric": task.metric,
        "labels": list(task.labels),
        "sizes": dict(task.sizes),
        "licence": task.licence,
        "citation": task.citation,
        "source": task.source,
        "published": dict(task.published),
        "places": [dict(place.describe()) for place, _ in task.places],
        "path": str(path) if path else None,
        "problem": problem,
    }


def tasks_text(documents: Sequence[Mapping[str, Any]]) -> str:
    """Return the table that `toolkit tasks` prints, and below it where each task's data is looked for."""
    rows = [("TASK", "METRIC", "TRAIN / DEV / TEST", "DATA", "LICENCE")]
    blocks = []
    for document in documents:
        sizes = " / ".join(f"{size:,}" for size in document["sizes"].values())
        state = "here" if document["path"] else "damaged" if document["problem"] else "not here"
        rows.append((document["task"], document["metric"], sizes, state, document["licence"]))
        found = document["path"] or document["problem"] or f"nowhere yet: toolkit data get {document['task']}"
        places = [f"  looked for  {place['place']}" for place in document["places"]]
        blocks.append("\n".join([f"{document['task']}: {document['title']}", *places, f"  found       {found}"]))
    return "\n\n".join([columns(rows), *blocks])
