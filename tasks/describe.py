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
    """Return the JSON document of one task; `as_published`: whether its data is at the place that `sizes` are of."""
    path, problem = where(task, data, cache)
    return {
        "task": task.name,
        "version": task.version,
        "title": task.title,
        "kind": task.kind,
        "folds": task.folds,
        "metric": task.metric,
        "labels": list(task.labels),
        "sizes": dict(task.sizes),
        "repeated": dict(task.repeated),
        "licence": task.licence,
        "citation": task.citation,
        "source": task.source,
        "published": dict(task.published),
        "places": [dict(place.describe()) for place, _ in task.places],
        "path": str(path) if path else None,
        "as_published": path is not None and path == task.places[0][0].find(data, cache),
        "problem": problem,
    }


def tasks_text(documents: Sequence[Mapping[str, Any]]) -> str:
    """Return the table that `toolkit tasks list` prints."""
    rows = [("TASK", "KIND", "LABELS", "METRIC", "TRAIN / DEV / TEST", "DATA", "LICENCE")]
    for document in documents:
        found = "here" if document["as_published"] else "other splits"
        state = found if document["path"] else "damaged" if document["problem"] else "not here"
        labels = str(len(document["labels"]))
        rows.append(
            (
                document["task"],
                document["kind"],
                labels,
                document["metric"],
                _sizes(document),
                state,
                document["licence"],
            )
        )
    notes = (
        "other splits: the data is here, from a place with other sizes than these.\n"
        "toolkit tasks show TASK: citation, published figures, where the data is looked for."
    )
    return f"{columns(rows)}\n\n{notes}"


def task_text(document: Mapping[str, Any]) -> str:
    """Return what `toolkit tasks show` prints."""
    labels = ", ".join(document["labels"])
    rows = [
        ("kind", f"{document['kind']}, {len(document['labels'])} labels: {labels}"),
        ("metric", document["metric"]),
        ("sizes", _sizes(document)),
        ("licence", document["licence"]),
        ("citation", document["citation"]),
        ("source", document["source"]),
        *(("looked for", place["place"]) for place in document["places"]),
        ("found", document["path"] or document["problem"] or f"nowhere yet: toolkit data get {document['task']}"),
    ]
    if document["repeated"]:
        repeated = ", ".join(f"{count} of {split}" for split, count in document["repeated"].items())
        rows.insert(3, ("repeated", f"{repeated} stand in train too, as published"))
    head = f"{document['task']}, version {document['version']}: {document['title']}"
    if not document["published"]:
        return f"{head}\n\n{columns(rows)}\n\nNo published figure on these splits is known."
    best_first = sorted(document["published"].items(), key=lambda item: -item[1])
    published = columns(
        [("PUBLISHED", document["metric"].upper()), *((name, f"{100 * s:.1f}") for name, s in best_first)]
    )
    return f"{head}\n\n{columns(rows)}\n\n{published}"


def _sizes(document: Mapping[str, Any]) -> str:
    sizes = " / ".join(f"{size:,}" for size in document["sizes"].values())
    return f"{sizes} in {document['folds']} folds" if document["folds"] else sizes
