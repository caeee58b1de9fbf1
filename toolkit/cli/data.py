"""`toolkit data`: task data and the text of the demonstration."""

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.frame import Report, Session, command

DATA = Annotated[Path | None, typer.Option(help="Folder of task data that you have.")]


def register(app: typer.Typer) -> None:
    """Add the `data` group to the command line."""
    group = typer.Typer(help="Task data and corpora, with checksums.", no_args_is_help=True)
    app.add_typer(group, name="data")

    @command(group, "list", ("toolkit data list", "toolkit data list --data data --json"))
    def list_(session: Session, data: DATA = None) -> Report:
        """List what can be had: files, sizes, checksums, and where each lies already."""
        settings = session.settings(paths__data=data).settings
        from tasks.catalogue import catalogue, catalogue_text
        from toolkit.config import cache_folder

        documents = catalogue(settings.paths.data, cache_folder(settings), settings.paths.tasks)
        return Report(documents, catalogue_text(documents))

    @command(group, "get", ("toolkit data get sst2 --data data", "toolkit data get sst2 --data data --json"))
    def get(
        session: Session,
        name: Annotated[str, typer.Argument(help="A name of `toolkit data list`.")],
        data: DATA = None,
    ) -> Report:
        """Say where data lies, and fetch it into the cache where it does not lie anywhere yet."""
        settings = session.settings(paths__data=data).settings
        from tasks.catalogue import obtain, obtained_text
        from toolkit.config import cache_folder

        document = obtain(name, settings.paths.data, cache_folder(settings), settings.paths.tasks)
        return Report(document, obtained_text(document))

    @command(group, "cache", ("toolkit data cache", "toolkit data cache --clear --json"))
    def cache(
        session: Session,
        clear: Annotated[bool, typer.Option("--clear", help="Remove the encoded sentences.")] = False,
    ) -> Report:
        """Say what the encoded sentences of tasks take on the disk; they can be made again at any time."""
        settings = session.settings().settings
        from tasks.adapter.cache import cache_report, layer_cache

        return Report(*cache_report(layer_cache(settings), clear))
