"""`toolkit runs`: the run store."""

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.frame import Report, Session, command

RUN = Annotated[str, typer.Argument(metavar="RUN", help="A run's id or the unique beginning of one, name, or folder.")]


def register(app: typer.Typer) -> None:
    """Add the `runs` group to the command line."""
    group = typer.Typer(help="The run store.", no_args_is_help=True)
    app.add_typer(group, name="runs")

    @command(group, "list", ("toolkit runs list", "toolkit runs list --all --json"))
    def list_(
        session: Session,
        all_runs: Annotated[bool, typer.Option("--all", help="Archived runs too.")] = False,
    ) -> Report:
        """List the runs, newest first: status, name, main score, start."""
        from toolkit.runs.describe import run_document, runs_table
        from toolkit.runs.reader import list_runs

        store = session.settings().settings.paths.runs
        runs = [run for run in list_runs(store) if all_runs or not run.notes.archived]
        return Report([run_document(run) for run in runs], runs_table(runs, store))

    @command(group, "show", ("toolkit runs show run-a", "toolkit runs show run-b --json"))
    def show(session: Session, run: RUN) -> Report:
        """Show one run: its manifest, scores, settings and files."""
        from toolkit.runs.describe import run_details, run_text
        from toolkit.runs.find import find_run
        from toolkit.runs.reader import load_run

        found = load_run(find_run(session.settings().settings.paths.runs, run).folder)
        return Report(run_details(found), run_text(found))

    @command(group, "table", ("toolkit runs table", "toolkit runs table --task sst2 --format latex -o table.tex"))
    def table(
        session: Session,
        task: Annotated[str | None, typer.Option(help="Only this task; several with commas between.")] = None,
        layout: Annotated[
            str, typer.Option("--format", help="terminal, csv (a line a score), markdown or latex.")
        ] = "terminal",
        out: Annotated[Path | None, typer.Option("-o", "--out", help="Write the table to this file.")] = None,
    ) -> Report:
        """Show all evaluations: representations down, tasks across, the best marked, differences tested."""
        from toolkit.files import write_text
        from toolkit.runs.describe_table import table_document, table_text
        from toolkit.runs.table import runs_for_table, score_table

        store = session.settings().settings.paths.runs
        tasks = None if task is None else list(dict.fromkeys(part.strip() for part in task.split(",")))
        found = score_table(runs_for_table(store, tasks=tasks))
        text = table_text(found, layout)
        if out is None:
            return Report(table_document(found), text)
        write_text(out, text + "\n")
        size = f"{len(found.rows)} × {len(found.columns)} scores"
        return Report(table_document(found) | {"output": str(out)}, f"{out}: {size}")

    @command(group, "archive", ("toolkit runs archive run-b", "toolkit runs archive run-b --undo"))
    def archive(
        session: Session,
        run: RUN,
        undo: Annotated[bool, typer.Option("--undo", help="Bring it back into the lists.")] = False,
    ) -> Report:
        """Take a run out of the lists; nothing is moved or deleted."""
        from toolkit.runs import notes
        from toolkit.runs.find import find_run

        found = find_run(session.settings().settings.paths.runs, run)
        notes.archive(found.folder, archived=not undo)
        word = "back in the lists" if undo else "archived; bring it back with --undo"
        return Report({"run": found.id, "archived": not undo}, f"{found.id}: {word}")

    @command(group, "rm", ("toolkit runs rm run-a", "toolkit runs rm run-b --json"))
    def rm(
        session: Session,
        run: RUN,
        force: Annotated[
            bool, typer.Option("--force", help="Remove it even if a process may still be writing it.")
        ] = False,
    ) -> Report:
        """Delete a run folder for good; refused while a process may be writing it."""
        from toolkit.runs.find import find_run
        from toolkit.runs.reader import remove_run

        found = find_run(session.settings().settings.paths.runs, run)
        remove_run(found, force)
        return Report({"run": found.id, "removed": True}, f"{found.id}: removed")
