"""Which tasks the adapter can train and score."""

from tasks.task import Task
from toolkit.errors import UsageError

WHAT = {"pair": "pairs of sentences", "tagging": "a label for each token"}


def check_supported(task: Task) -> None:
    """Refuse a task before anything is computed for it.

    Raises:
        UsageError: no head takes what the task asks for, or its score or its folds are not computed yet.
    """
    if task.kind != "sentence":
        lacks = f"it asks for {WHAT[task.kind]}, and all heads label single sentences"
    elif task.folds:
        lacks = f"it has {task.folds} folds, and one round with train, dev and test is all that is run"
    elif task.metric != "accuracy":
        lacks = f"its metric is {task.metric}, and accuracy is all that is computed"
    else:
        return
    raise UsageError(f"task {task.name!r} cannot be evaluated yet: {lacks}; choose another of `toolkit tasks list`")
