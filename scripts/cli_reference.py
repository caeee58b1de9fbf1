"""Write docs/cli.md from the commands' own help: `python scripts/cli_reference.py`."""

from pathlib import Path

import typer
from typer.testing import CliRunner

from toolkit.cli.main import app

TARGET = Path(__file__).resolve().parents[1] / "docs" / "cli.md"


def reference() -> str:
    """Return the reference as Markdown: the overview, then every command's help."""
    parts = ["# Command line\n\nMade by `python scripts/cli_reference.py`; do not edit.\n"]
    for words in [[], *commands()]:
        plain = {"COLUMNS": "100", "TERM": "dumb"}
        result = CliRunner().invoke(app, [*words, "--help"], prog_name="toolkit", env=plain)
        parts.append(f"## `{' '.join(['toolkit', *words])}`\n\n```\n{result.output.strip()}\n```\n")
    return "\n".join(parts)


def commands() -> list[list[str]]:
    """Return the words of every command, groups resolved, in alphabetical order."""

    def walk(command: object, words: list[str]) -> list[list[str]]:
        children = getattr(command, "commands", None)
        if children is None:
            return [words]
        return [found for name in sorted(children) for found in walk(children[name], [*words, name])]

    return walk(typer.main.get_command(app), [])


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
