"""How much memory the process took."""

import resource
import sys


def peak_memory_mb() -> int:
    """Return the largest resident memory of the process so far, in MiB."""
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes on macOS, in KiB elsewhere
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20)
