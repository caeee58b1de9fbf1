"""What all commands share: settings and output options, the two ways to print a report, and the error boundary."""

import functools
import inspect
import json
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from toolkit.errors import ToolkitError, UsageError


@dataclass(frozen=True)
class Report:
    """What a command answers: one JSON document for programs, one text for people, and the exit code.

    Attributes:
        then: what to do once it is printed.
    """

    document: Any
    text: str
    exit_code: int = 0
    then: Callable[[], None] | None = None


def by_direction(forward: float, backward: float | None, digits: int = 1) -> str:
    """Return "forward 84.0, backward 81.2", or "forward only" for a model without a backward direction."""
    if backward is None:
        return "forward only"
    return f"forward {forward:,.{digits}f}, backward {backward:,.{digits}f}"


@dataclass(frozen=True)
class Session:
    """The options that every command takes.

    Attributes:
        config: the configuration file, None for the working folder's.
        assignments: the `--set section.key=value` texts.
    """

    config: Path | None
    assignments: Sequence[str]

    def settings(self, **options: Any) -> "Any":
        """Resolve the settings; options are named `section__key`, those that are None fall through.

        Returns:
            `toolkit.config.Resolved`.
        """
        from toolkit.config import resolve

        dotted = {name.replace("__", ".", 1): value for name, value in options.items()}
        return resolve(self.config, dotted, self.assignments)


COMMON = (
    ("json_output", bool, typer.Option("--json", help="Print one JSON document and nothing else."), False),
    ("debug", bool, typer.Option("--debug", help="Show the traceback of an error."), False),
    ("config", Path | None, typer.Option("--config", help="Configuration file instead of ./config.toml."), None),
    ("assign", list[str] | None, typer.Option("--set", help="section.key=value, as often as you like."), None),
)


def command(app: typer.Typer, name: str, examples: tuple[str, str]) -> Callable[[Callable[..., Report]], Callable]:
    """Register a function `(session, …) -> Report` as a command.

    Args:
        app: the typer application or group.
        name: the command's name.
        examples: two command lines for `--help`; a test runs them in a folder prepared for it.
    """

    def register(function: Callable[..., Report]) -> Callable:
        own = list(inspect.signature(function).parameters.values())[1:]
        common = [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, option], default=default)
            for key, kind, option, default in COMMON
        ]

        @functools.wraps(function)
        def shell(**arguments: Any) -> None:
            values = {key: arguments.pop(key) for key, *_ in COMMON}
            session = Session(values["config"], values["assign"] or [])

            def work() -> None:
                _check_words([*arguments.values(), *values.values()])
                _print(function(session, **arguments), values["json_output"])

            with_boundary(work, values["debug"])

        parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
        shell.__signature__ = inspect.Signature(parameters + common)
        shell.__annotations__ = {p.name: p.annotation for p in parameters + common}
        epilog = "Examples:\n\n" + "\n\n".join(examples)
        app.command(name, help=inspect.getdoc(function), epilog=epilog)(shell)
        EXAMPLES.extend(examples)
        return function

    return register


EXAMPLES: list[str] = []


def _check_words(values: Sequence[Any]) -> None:
    """Refuse words of the command line whose bytes are not UTF-8: no run, report or message could hold them."""
    for value in values:
        for word in value if isinstance(value, list | tuple) else [value]:
            shown = os.fsencode(str(word)).decode("utf-8", "backslashreplace")
            if shown != str(word):
                raise UsageError(f"the bytes of {shown} are not UTF-8: rename the file, or set a UTF-8 locale")


def with_boundary(work: Callable[[], None], debug: bool) -> None:
    """Run a command; turn an expected error into one line and its exit code, and Ctrl-C into exit code 130."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        work()
        if "stdout" in CLOSED:
            _fail("standard output is closed: the command has done its work, its report is not shown", debug, 1)
    except ToolkitError as error:
        _fail(str(error), debug, error.exit_code)
    except BrokenPipeError:
        # The reader of our output has gone, as with `| head -1`; at exit Python would write what is left and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        _fail("stopped", debug, 130)
    except OSError as error:
        if error.filename is None and error.errno is None:
            raise
        _fail(f"{error.strerror or error} ({error.filename or 'no file named'})", debug, 1)


def _terminate(signum: int, frame: object) -> None:
    raise KeyboardInterrupt


def _fail(message: str, debug: bool, code: int) -> None:
    if debug:
        traceback.print_exc()
    sys.stderr.write(f"toolkit: {' '.join(message.split())}\n")
    raise typer.Exit(code) from None


def _print(report: Report, as_json: bool) -> None:
    if as_json:
        # Escapes are JSON whatever the terminal can show; backslashes of `survive_any_terminal` would not be.
        ascii_only = not (sys.stdout.encoding or "").lower().startswith("utf")
        text = json.dumps(report.document, ensure_ascii=ascii_only, indent=1, allow_nan=False)
    else:
        text = _for_terminal(report.text, sys.stdout.encoding or "ascii")
    sys.stdout.write(text.rstrip("\n") + "\n")
    sys.stdout.flush()
    if report.then:
        report.then()
    if report.exit_code:
        raise typer.Exit(report.exit_code)


def _for_terminal(text: str, encoding: str) -> str:
    """Write the signs of our tables in ASCII where a terminal does not have them."""
    for sign, plain in PLAIN.items():
        if sign in text:
            try:
                sign.encode(encoding)
            except UnicodeEncodeError:
                text = text.replace(sign, plain)
    return text


def survive_any_terminal() -> None:
    """Make standard output and error fit for any text, and put the null device where one of them is closed.

    A closed descriptor would be given to the next file that is opened, and what libraries print would go into it.
    """
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            null = os.open(os.devnull, os.O_WRONLY)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace"))
            CLOSED.append(name)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


PLAIN = {"±": "+/-", "×": "x", "–": "-", "−": "-", "…": "...", "→": "->", "·": "-", "“": '"', "”": '"', "Δ": "d"}
CLOSED: list[str] = []  # standard streams that were closed when the process began
