"""One writer for each run: a lock in the run folder that the operating system releases when the writer dies."""

import logging
from pathlib import Path

from filelock import FileLock, Timeout

from toolkit.errors import UsageError

logger = logging.getLogger(__name__)

FILE = ".lock"


class RunLock:
    """The right to write one run folder; nobody else gets it until it is released or this process ends.

    As a context manager it is released at the end of the block.

    Args:
        folder: of the run.
        force: take the lock even if another process holds it. That process then finds the run to be no longer its own
            (`RunWriter.require_mine`).

    Raises:
        UsageError: another process holds it.
    """

    def __init__(self, folder: Path, force: bool = False) -> None:
        path = folder / FILE
        # Threads share it: a run may be started in one and left in another.
        self._lock = FileLock(path, timeout=0, thread_local=False, fallback_to_soft=False, preserve_lock_file=True)
        try:
            try:
                self._lock.acquire()
            except Timeout:
                if not force:
                    raise UsageError(
                        f"{folder.name} is being written by another process: stop it or wait for it; "
                        "--force takes the run from it"
                    ) from None
                path.unlink(missing_ok=True)  # the other process keeps its lock on a file that no longer has a name
                self._lock.acquire()
        except NotImplementedError:
            logger.warning("%s: this file system has no locks, two writers of a run would not see each other", folder)

    def __enter__(self) -> "RunLock":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Let others write the run."""
        self._lock.release()
