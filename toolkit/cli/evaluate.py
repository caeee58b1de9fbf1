"""`toolkit evaluate`."""

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.frame import Report, Session, command

EXAMPLES = (
    "toolkit evaluate --task sst2 --model model --mix none,learned --head linear --data data --set evaluate.epochs=1",
    "toolkit evaluate --task sst2 --model model --mix top --train-fraction 0.5,1 --data data "
    "--set evaluate.epochs=1 --format markdown -o table.md",
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
            typer.Option(
                help="none, layer:j, top, average, fixed:w0,w1,…, learned, gated or concat, each also after bag+, "
                "which adds the decision values of a bag of words; several with commas."
            ),
        ] = None,
        head: Annotated[
            str | None, typer.Option(help="The classifier: bilstm, bcn, cnn, linear, pair or tagger.")
        ] = None,
        x_k: Annotated[bool | None, typer.Option("--x-k/--no-x-k", help="Token vectors beside the mix.")] = None,
        mix_at: Annotated[str | None, typer.Option(help="Of the head: input, output or both.")] = None,
        word_vectors: Annotated[
            str | None,
            typer.Option(
                help="x_k: trained:100 (default; learned with the head), model, or a GloVe, word2vec or fastText file."
            ),
        ] = None,
        finetune_rate: Annotated[
            float | None,
            typer.Option(help="Train the biLM with the head, at this learning rate, such as 1e-4; 0: frozen."),
        ] = None,
        seeds: Annotated[int | None, typer.Option(help="Runs a mix, with seeds one behind the other.")] = None,
        train_fraction: Annotated[
            str | None,
            typer.Option(help="Share of the training examples, above 0, at most 1; several with commas: a curve."),
        ] = None,
        floors: Annotated[
            bool,
            typer.Option(
                "--floors/--no-floors",
                help="Also train what needs no model: the majority label and a bag of words (TF-IDF, logistic "
                "regression); default: yes.",
            ),
        ] = True,
        rerun: Annotated[
            bool, typer.Option("--rerun", help="Train anew what the store holds finished runs of.")
        ] = False,
        layout: Annotated[
            str, typer.Option("--format", help="Of the table: terminal, csv (a line a score), markdown or latex.")
        ] = "terminal",
        out: Annotated[Path | None, typer.Option("-o", "--out", help="Write the table to this file.")] = None,
        data: Annotated[Path | None, typer.Option(help="Folder of task data that you have; the file, for csv.")] = None,
        text_column: Annotated[str | None, typer.Option(help="Of csv data; default: text.")] = None,
        label_column: Annotated[str | None, typer.Option(help="Of csv data; default: label.")] = None,
        metric: Annotated[
            str | None, typer.Option(help="Of csv data: accuracy (the default), macro_f1 or matthews.")
        ] = None,
        split_column: Annotated[str | None, typer.Option(help="Of csv data: train, dev or test a row.")] = None,
        text2_column: Annotated[
            str | None, typer.Option(help="Of csv data: the second text of a pair, for the heads linear, pair and bcn.")
        ] = None,
        tag_column: Annotated[
            str | None,
            typer.Option(
                help="Read csv data as CoNLL files, a token per line: the number of the column of tags, or last; "
                "--text-column is then the number of the column of tokens, default: 1."
            ),
        ] = None,
        quotes: Annotated[
            bool | None,
            typer.Option(
                "--quotes/--no-quotes",
                help="Whether quotes around fields of csv data are not text; default: yes for commas, for tabs only if "
                "that works out for the whole file.",
            ),
        ] = None,
    ) -> Report:
        """Train classifiers on the layers of a model, score them, and compare representations of the words.

        The model is frozen unless --finetune-rate is given. One training at a time: every mix and seed on every task,
        for as many as are named. Finished runs of the same settings, data, model and seed are taken from the run store,
        and a training that was killed goes on behind its last epoch: the same command goes on after a kill.
        """
        settings = session.settings(
            evaluate__mix=mix,
            evaluate__mix_at=mix_at,
            evaluate__head=head,
            evaluate__x_k=x_k,
            evaluate__word_vectors=word_vectors,
            evaluate__finetune_rate=finetune_rate,
            evaluate__seeds=seeds,
            paths__data=data,
        ).settings
        from tasks.adapter.fraction import fractions_of
        from tasks.adapter.supported import check_supported
        from tasks.own_data import Columns, chosen_tasks
        from toolkit.embed.models import resolve_model
        from toolkit.errors import UsageError
        from toolkit.runs.describe_table import check_layout

        check_layout(layout)
        fractions = fractions_of(train_fraction)
        columns = Columns.given(text_column, label_column, split_column, text2_column, tag_column, quotes)
        chosen = chosen_tasks(task, columns, settings, metric)
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

            sources = [source_of_dumps(embeddings, one, one.part_names) for one in chosen]
        from tasks.adapter.describe import evaluation_text
        from tasks.adapter.grid import run_grid
        from toolkit.files import write_text
        from toolkit.runs.describe_table import table_document, table_text
        from toolkit.runs.table import runs_for_table, score_table

        grid = run_grid(
            list(zip(chosen, sources, strict=True)), settings, settings.paths.runs, fractions, rerun, floors
        )
        found = score_table(runs_for_table(settings.paths.runs, grid.runs))
        document = grid.documents[0] if len(grid.documents) == 1 else {"tasks": grid.documents}
        document |= {"table": table_document(found), "taken": grid.taken}
        if out is not None:
            write_text(out, table_text(found, layout) + "\n")
            return Report(
                document | {"output": str(out)}, f"{evaluation_text(grid.documents, found)}\n\n{out}: written"
            )
        text = evaluation_text(grid.documents, found) if layout == "terminal" else table_text(found, layout)
        return Report(document, text)
