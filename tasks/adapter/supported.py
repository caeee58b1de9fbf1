"""Which head takes which task."""

from tasks.adapter.head import all_heads, find_head
from tasks.adapter.representation import BESIDE_BAG, check_form, split_mixes
from tasks.adapter.wordvectors import width_of
from tasks.task import Task
from toolkit.config import Evaluate
from toolkit.errors import UsageError

WHAT = {"sentence": "single sentences", "pair": "pairs of sentences", "tagging": "a label for each token"}


def check_supported(task: Task, settings: Evaluate) -> None:
    """Refuse a task before anything is computed for it.

    Raises:
        UsageError: a mix, the word vectors or the head is unknown, or the head does not take what the task asks for or
            has no states that a mix could be next to.
    """
    head = find_head(settings.head)
    width_of(settings)
    for mix in split_mixes(settings.mix):
        check_form(mix)
    if task.kind not in head.kinds:
        fitting = ", ".join(name for name, known in all_heads().items() if task.kind in known.kinds)
        raise UsageError(
            f"task {task.name!r} is about {WHAT[task.kind]}, not for head {settings.head!r}: use {fitting}"
        )
    beside = next((mix for mix in split_mixes(settings.mix) if mix.startswith(BESIDE_BAG)), None)
    if task.kind == "tagging" and beside:
        raise UsageError(
            f"task {task.name!r}, mix {beside!r}: a bag of words goes with a label a sentence or pair, not a label a "
            f"token; take {beside.removeprefix(BESIDE_BAG)}"
        )
    if settings.mix_at != "input" and not head.has_output:
        raise UsageError(f"head {settings.head!r} has no states for a mix at its output: use evaluate.mix_at=input")
