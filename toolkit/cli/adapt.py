"""`toolkit adapt`."""

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.frame import Report, Session, command
from toolkit.errors import UsageError

EXAMPLES = (
    "toolkit adapt model --corpus corpus.txt --also sentences.txt --steps 3 --set pretrain.batch_size=8",
    "toolkit adapt model --corpus corpus.txt --vocab rebuild --steps 3 --set pretrain.batch_size=8 --json",
)


def register(app: typer.Typer) -> None:
    """Add `adapt` to the command line."""

    @command(app, "adapt", EXAMPLES)
    def adapt_command(
        session: Session,
        model: Annotated[str | None, typer.Argument(help="The model to train on: a run, model folder or zip.")] = None,
        corpus: Annotated[list[str] | None, typer.Option(help="Text: a file, folder or glob; repeatable.")] = None,
        valid: Annotated[list[str] | None, typer.Option(help="Held-out text; default: files named valid…")] = None,
        vocab: Annotated[
            str | None,
            typer.Option(
                help="own (the model's, with its softmax), rebuild (from the text) or a vocabulary file; default: own, "
                "or rebuild where the model has no softmax. Words of both keep their rows."
            ),
        ] = None,
        also: Annotated[
            list[Path] | None,
            typer.Option(help="Tokenised text to score before and after, as `toolkit score` does; repeatable."),
        ] = None,
        epochs: Annotated[float | None, typer.Option(help="Passes over the text at most.")] = None,
        steps: Annotated[int | None, typer.Option(help="Stop after this many steps.")] = None,
        minutes: Annotated[float | None, typer.Option(help="Stop after this many minutes of training.")] = None,
        seed: Annotated[int | None, typer.Option(help="Seed of everything that is left to chance.")] = None,
        name: Annotated[str | None, typer.Option(help="Name of the run; default: adapt- and the model's.")] = None,
        resume: Annotated[str | None, typer.Option(help="Resume this run exactly where it stopped.")] = None,
        force: Annotated[
            bool, typer.Option("--force", help="With --resume: even if a process may still be writing the run.")
        ] = False,
    ) -> Report:
        """Train a model on, on text of your domain, until held-out perplexity stops falling; tell before and after.

        The shape is the model's, whatever the preset. The learning rate is adapt.learning_rate, lower than that of
        pretraining.
        """
        resolved = session.settings(
            adapt__epochs=epochs, pretrain__steps=steps, pretrain__minutes=minutes, pretrain__seed=seed
        )
        store = resolved.settings.paths.runs
        if resume is not None and any((model, corpus, valid, vocab, also, seed is not None, name)):
            raise UsageError("with --resume only --epochs, --steps and --minutes may change; the rest is the run's own")
        if resume is None and (model is None or not corpus):
            raise UsageError("adapt takes either MODEL --corpus PATH (a new run) or --resume RUN")
        if force and resume is None:
            raise UsageError("--force is for --resume RUN")
        import toolkit.pretrain.adapt as library

        if resume is not None:
            limits = {"epochs": epochs, "steps": steps, "minutes": minutes}
            limits = {key: value for key, value in limits.items() if value is not None}
            document = library.resume(store, resume, limits, force)
        else:
            from toolkit.embed.models import resolve_model

            parent = resolve_model(model, store)
            document = library.adapt(parent, corpus, resolved, valid, vocab, also or [], name)
        return Report(document, library.describe(document), exit_code=130 if document["stopped"] else 0)
