"""The errors that a user can cause and mend; everything else is a defect and keeps its traceback."""

import difflib
from collections.abc import Iterable

MANY = 20  # names beyond which a message does not list them all


class ToolkitError(Exception):
    """An expected failure: one line that says what is wrong, where, with both values, and what to do.

    The command line prints the message and leaves with `exit_code`; the dashboard shows it in place.
    """

    exit_code = 1


class UsageError(ToolkitError):
    """A wrong option, name, path or setting: nothing was started (exit code 2)."""

    exit_code = 2


class DataError(ToolkitError):
    """Text or task data that cannot be read as what it is meant to be."""


class DiskFullError(ToolkitError):
    """A file does not fit on its disk; what was there before is as it was."""


class FormatError(ToolkitError):
    """A model folder, dump, checkpoint or run that is damaged, incomplete or of another kind."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the hint that ends a message about an unknown name.

    Args:
        name: what the user wrote.
        known: the names that exist.

    Returns:
        "did you mean 'x'? Known: a, b, x", or "known: a, b, x" where none is near; of many names the nearest only.
    """
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else ""
    if len(known) <= MANY:
        return f"{hint} Known: {', '.join(known)}" if near else f"known: {', '.join(known) or 'none'}"
    return hint or f"none of the {len(known)} known names is near"
