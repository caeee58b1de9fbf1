"""TensorFlow, imported without its start-up chatter: every other module takes `tf` from here."""

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

# What TensorFlow 2.21 writes at import whatever TF_CPP_MIN_LOG_LEVEL says.
_CHATTER = re.compile(rb"^(WARNING: All log messages before absl::InitializeLog|[IW]\d{4} \d\d:\d\d:)")


@contextmanager
def _without_chatter() -> Iterator[None]:
    """Hold back what native code writes to standard error, then pass on all lines that are not chatter."""
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            held.seek(0)
            os.write(2, b"".join(line for line in held if not _CHATTER.match(line)))


if os.environ.get("TF_CONFIG"):
    # What native code writes about a worker that is gone goes on for many lines; ours tells it in one.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

with _without_chatter():
    import tensorflow as tf

__all__ = ["tf"]
