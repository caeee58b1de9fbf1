"""`toolkit inspect`."""

from typing import Annotated

import typer

from toolkit.cli.frame import Report, Session, command


def register(app: typer.Typer) -> None:
    """Add `inspect` to the command line."""

    @command(app, "inspect", ("toolkit inspect model", "toolkit inspect run-senses --json"))
    def inspect_command(
        session: Session,
        path: Annotated[str, typer.Argument(help="A file or folder, or a run's name.")],
    ) -> Report:
        """Say what a model, dump, occurrences file, vocabulary or run is: shape, size, fingerprints."""
        store = session.settings().settings.paths.runs
        from toolkit.inspection import describe, inspect

        document = inspect(path, store)
        return Report(document, describe(document))
