"""How much memory the process takes, and how much the machine would still give it."""

import os
import resource
import sys
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
# Limit and use of a container's memory: cgroup v2, then v1.
CGROUP_FILES = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))


def peak_memory_mb() -> int:
    """Return the largest resident memory of the process so far, in MiB."""
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes on macOS, in KiB elsewhere
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20)


def memory_in_use() -> int:
    """Return the resident memory of the process in bytes; its peak so far where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return peak_memory_mb() * 2**20
    return pages * os.sysconf("SC_PAGE_SIZE")


def memory_available() -> int | None:
    """Return how many bytes the machine, or the container's limit, still gives to processes; None where unknown."""
    found = []
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    for limit, used in CGROUP_FILES:
        try:
            texts = [(CGROUPS / name).read_text(encoding="ascii").strip() for name in (limit, used)]
        except OSError:  # no such limit here
            continue
        if texts[0] != "max":
            found.append(max(0, int(texts[0]) - int(texts[1])))
    return min(found, default=None)
