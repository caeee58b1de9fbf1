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


class _KerasLater:
    """Finds nothing, and no `keras.src` either: TensorFlow, which would load Keras at its import, then leaves it.

    `tf.keras` loads it when it is touched. It takes a quarter of the start of what needs no Keras.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "keras.src":
            raise ModuleNotFoundError("Keras is loaded later", name=name)


if os.environ.get("TF_CONFIG"):
    # What native code writes about a worker that is gone goes on for many lines; ours tells it in one.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

sys.meta_path.insert(0, _KerasLater)
try:
    with _without_chatter():
        import tensorflow as tf
finally:
    sys.meta_path.remove(_KerasLater)

__all__ = ["tf"]
