"""`toolkit tasks`."""

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.frame import Report, Session, command


def register(app: typer.Typer) -> None:
    """Add `tasks` to the command line."""

    @command(app, "tasks", ("toolkit tasks", "toolkit tasks --data data --json"))
    def tasks_command(
        session: Session,
        data: Annotated[Path | None, typer.Option(help="Folder of task data that you have.")] = None,
    ) -> Report:
        """List the tasks: metric, sizes, licence, where their data is looked for and whether it is there."""
        settings = session.settings(paths__data=data).settings
        from tasks.describe import task_document, tasks_text
        from tasks.registry import all_tasks
        from toolkit.config import cache_folder

        documents = [task_document(task, settings.paths.data, cache_folder(settings)) for task in all_tasks().values()]
        return Report(documents, tasks_text(documents))
