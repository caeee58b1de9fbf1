"""`toolkit evaluate`."""

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.frame import Report, Session, command

EXAMPLES = (
    "toolkit evaluate --task sst2 --model model --mix none,learned --head linear --data data --set evaluate.epochs=1",
    "toolkit evaluate --task sst2 --model model --mix top --data data --set evaluate.epochs=1 --json",
)


def register(app: typer.Typer) -> None:
    """Add `evaluate` to the command line."""

    @command(app, "evaluate", EXAMPLES)
    def evaluate_command(
        session: Session,
        task: Annotated[str, typer.Option(help="A task of `toolkit tasks`; several with commas between.")],
        model: Annotated[str, typer.Option(help="A run, a model folder or an NLPL zip.")],
        mix: Annotated[
            str | None,
            typer.Option(help="none, layer:j, top, average, fixed:w0,w1,… or learned; several with commas between."),
        ] = None,
        head: Annotated[str | None, typer.Option(help="The classifier: bilstm or linear.")] = None,
        x_k: Annotated[bool | None, typer.Option("--x-k/--no-x-k", help="Token vectors beside the mix.")] = None,
        seeds: Annotated[int | None, typer.Option(help="Runs a mix, with seeds one behind the other.")] = None,
        data: Annotated[Path | None, typer.Option(help="Folder of task data that you have.")] = None,
    ) -> Report:
        """Train a classifier on the frozen layers of a model, score it, and compare representations of the words."""
        settings = session.settings(
            evaluate__mix=mix, evaluate__head=head, evaluate__x_k=x_k, evaluate__seeds=seeds, paths__data=data
        ).settings
        from tasks.registry import find_task
        from toolkit.embed.models import resolve_model

        chosen = [find_task(name) for name in dict.fromkeys(part.strip() for part in task.split(","))]
        path = resolve_model(model, settings.paths.runs)
        from tasks.adapter.describe import evaluation_text
        from tasks.adapter.evaluate import evaluate, source_of
        from toolkit.bilm.folder import load_model

        source = source_of(load_model(path), settings)
        documents = [evaluate(one, source, settings, settings.paths.runs) for one in chosen]
        return Report(documents[0] if len(documents) == 1 else documents, evaluation_text(documents))
