"""Is the process that wrote a run still there? Asked on the host where it ran."""

import os
from pathlib import Path


def start_mark(pid: int) -> str | None:
    """Return the kernel's start time of a process, which tells it from a later one with the same number.

    None where there is no such process or the system has no /proc.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()  # the name in brackets may hold blanks and brackets
    return None if fields[0] == "Z" else fields[19]  # a zombie has ended; field 22 of proc(5) is starttime


def is_alive(pid: int, mark: str | None) -> bool:
    """Return whether the process that had this number and start mark still runs on this host."""
    if mark is not None:
        return start_mark(pid) == mark
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
