"""A task's sentences as text files, so that any encoder can make vectors for them."""

from pathlib import Path
from typing import Any

from tasks.task import Splits, Task
from toolkit.errors import UsageError
from toolkit.files import write_text
from toolkit.text.mark import text_fingerprint


def split_sentences(splits: Splits) -> dict[str, list[tuple[str, ...]]]:
    """Return the tokens of all sentences by split, in the order of the examples; of a pair, the first one first."""
    return {name: [tokens for example in part for tokens in example.sentences] for name, part in splits.parts().items()}


def export(task: Task, data: Path | None, cache: Path, out: Path) -> dict[str, Any]:
    """Write the sentences of a task, a file a split: a sentence a line, one blank between tokens, UTF-8.

    Args:
        task: what is asked.
        data, cache: where its data is looked for, see `Task.load`.
        out: the folder; made when missing.

    Returns:
        the JSON document: task, output, files (each split, path, sentences, tokens, text_fingerprint).

    Raises:
        UsageError: one of the files exists already.
        DataError: the data cannot be had or read.
    """
    parts = split_sentences(task.load(data, cache))
    paths = {name: out / f"{name}.txt" for name in parts}
    existing = next((path for path in paths.values() if path.exists()), None)
    if existing is not None:
        raise UsageError(f"{existing} exists already: remove it or give another -o")
    out.mkdir(parents=True, exist_ok=True)
    files = []
    for name, sentences in parts.items():
        write_text(paths[name], "".join(" ".join(tokens) + "\n" for tokens in sentences))
        files.append(
            {
                "split": name,
                "path": str(paths[name]),
                "sentences": len(sentences),
                "tokens": sum(map(len, sentences)),
                "text_fingerprint": text_fingerprint(sentences),
            }
        )
    return {"task": task.name, "output": str(out), "files": files}


def export_text(document: dict[str, Any]) -> str:
    """Return a line a file, and what to do with them."""
    lines = [f"{f['path']}: {f['sentences']:,} sentences, {f['tokens']:,} tokens" for f in document["files"]]
    advice = (
        f"Give each line a dataset of vectors, one a token (docs/formats.md says how), then:\n"
        f"toolkit evaluate --task {document['task']} --embeddings FOLDER"
    )
    return "\n".join([*lines, "", advice])
