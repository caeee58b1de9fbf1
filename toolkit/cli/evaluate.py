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
        task: Annotated[
            str, typer.Option(help="A task of `toolkit tasks list`, several with commas between; csv: data of yours.")
        ],
        model: Annotated[str | None, typer.Option(help="A run, a model folder or an NLPL zip.")] = None,
        embeddings: Annotated[
            str | None,
            typer.Option(
                help="Instead of a model: a folder with a dump a split (train.hdf5, dev.hdf5, test.hdf5), of any "
                "encoder, or a path with {split} and {task} in it."
            ),
        ] = None,
        mix: Annotated[
            str | None,
            typer.Option(help="none, layer:j, top, average, fixed:w0,w1,… or learned; several with commas between."),
        ] = None,
        head: Annotated[str | None, typer.Option(help="The classifier: bilstm or linear.")] = None,
        x_k: Annotated[bool | None, typer.Option("--x-k/--no-x-k", help="Token vectors beside the mix.")] = None,
        seeds: Annotated[int | None, typer.Option(help="Runs a mix, with seeds one behind the other.")] = None,
        data: Annotated[Path | None, typer.Option(help="Folder of task data that you have; the file, for csv.")] = None,
        text_column: Annotated[str | None, typer.Option(help="Of csv data; default: text.")] = None,
        label_column: Annotated[str | None, typer.Option(help="Of csv data; default: label.")] = None,
        split_column: Annotated[str | None, typer.Option(help="Of csv data: train, dev or test a row.")] = None,
    ) -> Report:
        """Train a classifier on the frozen layers of a model, score it, and compare representations of the words."""
        settings = session.settings(
            evaluate__mix=mix, evaluate__head=head, evaluate__x_k=x_k, evaluate__seeds=seeds, paths__data=data
        ).settings
        from tasks.adapter.supported import check_supported
        from tasks.own_data import Columns, chosen_tasks
        from toolkit.embed.models import resolve_model
        from toolkit.errors import UsageError

        chosen = chosen_tasks(task, Columns.given(text_column, label_column, split_column), settings)
        for one in chosen:
            check_supported(one, settings.evaluate)
        if (model is None) == (embeddings is None):
            raise UsageError("give --model or --embeddings: one of them, not both")
        if embeddings is None:
            path = resolve_model(model, settings.paths.runs)
            from tasks.adapter.evaluate import source_of
            from toolkit.bilm.folder import load_model

            sources = [source_of(load_model(path), settings)] * len(chosen)
        else:
            from tasks.adapter.dumps import source_of_dumps

            sources = [source_of_dumps(embeddings, one) for one in chosen]
        from tasks.adapter.describe import evaluation_text
        from tasks.adapter.evaluate import evaluate

        pairs = zip(chosen, sources, strict=True)
        documents = [evaluate(one, source, settings, settings.paths.runs) for one, source in pairs]
        return Report(documents[0] if len(documents) == 1 else documents, evaluation_text(documents))
