"""One harness for hostile inputs: the real command line in this process, in a folder that must stay clean."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from toolkit.cli.main import app


@dataclass(frozen=True)
class Said:
    """What a command answered.

    Attributes:
        code: exit code.
        out, err: what it printed; the last line of `err` is the message of an error.
    """

    code: int
    out: str
    err: str

    @property
    def message(self) -> str:
        """The last line of standard error."""
        return self.err.rstrip("\n").rsplit("\n", 1)[-1]

    def refused(self, *parts: str) -> None:
        """Check that this was one clear line with all these parts, exit code 1 or 2 and nothing on standard output."""
        assert self.code in (1, 2), (self.code, self.out, self.err)
        assert self.out == "" and self.message.startswith("toolkit: "), (self.out, self.err)
        assert "Traceback" not in self.err
        for part in parts:
            assert part in self.message, (part, self.message)

    def worked(self, *parts: str) -> None:
        """Check for exit code 0, no traceback, and these parts in what was printed to either side."""
        assert self.code == 0, (self.code, self.out, self.err)
        assert "Traceback" not in self.err
        for part in parts:
            assert part in self.out + self.err, (part, self.out, self.err)


@pytest.fixture
def toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Said]]:
    """Return a function that runs `toolkit` with these words in `tmp_path`, with a run store and cache of its own.

    At the end no temporary file of an unfinished write may be left in `tmp_path`.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLKIT_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("TOOLKIT_CACHE", str(tmp_path / "cache"))

    def run(*words: object, stdin: str | None = None) -> Said:
        done = CliRunner().invoke(app, [str(word) for word in words], input=stdin)
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Said(done.exit_code, done.stdout, done.stderr)

    yield run
    left = [path for path in tmp_path.rglob("*") if ".tmp-" in path.name or path.name.startswith(".removing-")]
    assert not left, left
