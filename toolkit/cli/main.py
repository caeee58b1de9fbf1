"""The `toolkit` command: discovers the command files of this folder and hands over to the one that was typed."""

import importlib
import pkgutil
from typing import Annotated

import typer

import toolkit.cli
from toolkit import __version__
from toolkit.cli.frame import survive_any_terminal

FRAME = {"main", "frame"}

app = typer.Typer(
    name="toolkit",
    help="Pretrain an ELMo-style biLM, learn what each layer is worth, see what a word means in its sentence.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

for _, _name, _ in sorted(pkgutil.iter_modules(toolkit.cli.__path__), key=lambda module: module.name):
    if _name not in FRAME:
        importlib.import_module(f"toolkit.cli.{_name}").register(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"elmo-toolkit {__version__}")
        raise typer.Exit()


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def main() -> None:
    """Run the command line."""
    survive_any_terminal()
    app()


if __name__ == "__main__":
    main()
