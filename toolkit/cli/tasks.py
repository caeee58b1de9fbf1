"""`toolkit tasks`."""

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.frame import Report, Session, command

DATA = Annotated[Path | None, typer.Option(help="Folder of task data that you have.")]


def register(app: typer.Typer) -> None:
    """Add the `tasks` group to the command line."""
    group = typer.Typer(help="The tasks: what they ask, whose they are, published figures.", no_args_is_help=True)
    app.add_typer(group, name="tasks")

    @command(group, "list", ("toolkit tasks list", "toolkit tasks list --data data --json"))
    def list_(session: Session, data: DATA = None) -> Report:
        """List the tasks, yours (`paths.tasks`) too: kind, metric, sizes, licence, and whether the data is there."""
        settings = session.settings(paths__data=data).settings
        from tasks.describe import task_document, tasks_text
        from tasks.registry import all_tasks
        from toolkit.config import cache_folder

        known = all_tasks(settings.paths.tasks).values()
        documents = [task_document(task, settings.paths.data, cache_folder(settings)) for task in known]
        return Report(documents, tasks_text(documents))

    @command(group, "show", ("toolkit tasks show sst2", "toolkit tasks show wic --data data --json"))
    def show(
        session: Session,
        name: Annotated[str, typer.Argument(help="A name of `toolkit tasks list`.")],
        data: DATA = None,
    ) -> Report:
        """Show one task: labels, sizes, citation, licence, published figures, and where its data is looked for."""
        settings = session.settings(paths__data=data).settings
        from tasks.describe import task_document, task_text
        from tasks.registry import find_task
        from toolkit.config import cache_folder

        task = find_task(name, settings.paths.tasks)
        document = task_document(task, settings.paths.data, cache_folder(settings))
        return Report(document, task_text(document))

    @command(
        group,
        "export",
        ("toolkit tasks export sst2 -o sst2 --data data", "toolkit tasks export sst2 -o out --data data --json"),
    )
    def export_(
        session: Session,
        name: Annotated[str, typer.Argument(help="A name of `toolkit tasks list`.")],
        output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write train.txt … into.")],
        data: DATA = None,
    ) -> Report:
        """Write a task's sentences, a file a split and a tokenised sentence a line, for any encoder to make vectors."""
        settings = session.settings(paths__data=data).settings
        from tasks.export import export, export_text
        from tasks.registry import find_task
        from toolkit.config import cache_folder

        task = find_task(name, settings.paths.tasks)
        document = export(task, settings.paths.data, cache_folder(settings), output)
        return Report(document, export_text(document))
