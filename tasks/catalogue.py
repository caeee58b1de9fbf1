"""What `toolkit data` offers: the data of every task, and the text of the demonstration."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks import demo_text, movie_reviews
from tasks.describe import where
from tasks.registry import all_tasks
from toolkit.errors import UsageError, did_you_mean
from toolkit.files import sha256
from toolkit.runs.describe import columns
from toolkit.text import wordnet


def catalogue(data: Path | None, cache: Path, own_tasks: Path | None = None) -> list[dict[str, Any]]:
    """Return one document a data set: name, kind, title, licence, places with checksums, path, problem.

    Args:
        data: folder of task data that the user has.
        cache: folder of downloads.
        own_tasks: folder of the user's task files.
    """
    documents = []
    for task in all_tasks(own_tasks).values():
        path, problem = where(task, data, cache)
        places = [dict(place.describe()) for place, _ in task.places]
        documents.append(_entry(task.name, "task", task.title, task.licence, places, path, problem))
    folder = cache / demo_text.NAME
    path = folder if demo_text.is_there(folder) else None
    places = [dict(movie_reviews.FILE.describe()), {"place": f"pip package {wordnet.DISTRIBUTION} (extra 'demo')"}]
    documents.append(_entry(demo_text.NAME, "text", demo_text.TITLE, demo_text.LICENCE, places, path, ""))
    return documents


def _entry(
    name: str, kind: str, title: str, licence: str, places: list[dict], path: Path | None, problem: str
) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "title": title,
        "licence": licence,
        "places": places,
        "path": str(path) if path else None,
        "problem": problem,
    }


def obtain(name: str, data: Path | None, cache: Path, own_tasks: Path | None = None) -> dict[str, Any]:
    """Return where data lies, after fetching or making it where it lay nowhere.

    Returns:
        name, path (absolute), files: each with file (name within the path), bytes and sha256.

    Raises:
        UsageError: there is no data of that name; the message names the nearest.
        DataError: it cannot be had; the message says what to do.
    """
    known = all_tasks(own_tasks)
    if name == demo_text.NAME:
        path = demo_text.demo_text(cache)
    elif name in known:
        task = known[name]
        path = task.find(data, cache) or task.obtain(cache)
    else:
        raise UsageError(f"no data called {name!r}: {did_you_mean(name, [*known, demo_text.NAME])}")
    path = path.resolve()
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    listed = [
        {
            "file": file.relative_to(path).as_posix() if path.is_dir() else file.name,
            "bytes": file.stat().st_size,
            "sha256": sha256(file),
        }
        for file in files
    ]
    return {"name": name, "path": str(path), "files": listed}


def catalogue_text(documents: Sequence[Mapping[str, Any]]) -> str:
    """Return the table that `toolkit data list` prints."""
    rows = [("NAME", "KIND", "MB", "SHA256", "FROM", "LIES AT")]
    for document in documents:
        lies_at = document["path"] or document["problem"] or "-"
        for number, place in enumerate(document["places"]):
            size = f"{place['bytes'] / 1e6:.1f}" if "bytes" in place else "-"
            checksum = f"{place['sha256'][:12]}…" if "sha256" in place else "-"
            head = (document["name"], document["kind"]) if number == 0 else ("", "")
            rows.append((*head, size, checksum, place["place"], lies_at if number == 0 else ""))
    return columns(rows)


def obtained_text(document: Mapping[str, Any]) -> str:
    """Return the lines that `toolkit data get` prints."""
    files = [("FILE", "BYTES", "SHA256"), *((f["file"], f"{f['bytes']:,}", f["sha256"]) for f in document["files"])]
    return f"{document['name']}: {document['path']}\n\n{columns(files)}"
