"""The `toolkit` command: discovers the command files of this folder and hands over to the one that was typed."""

import importlib
import pkgutil

import typer

import toolkit.cli
from toolkit.cli.frame import survive_any_terminal

FRAME = {"main", "frame"}

app = typer.Typer(
    name="toolkit",
    help="Pretrain an ELMo-style biLM, learn what each layer is worth, see what a word means in its sentence.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

for _, _name, _ in sorted(pkgutil.iter_modules(toolkit.cli.__path__), key=lambda module: module.name):
    if _name not in FRAME:
        importlib.import_module(f"toolkit.cli.{_name}").register(app)


def main() -> None:
    """Run the command line."""
    survive_any_terminal()
    app()


if __name__ == "__main__":
    main()
