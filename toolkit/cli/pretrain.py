"""`toolkit pretrain`."""

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.frame import Report, Session, by_direction, command
from toolkit.errors import UsageError

EXAMPLES = (
    "toolkit pretrain --corpus corpus.txt --preset tiny --steps 3 --set pretrain.batch_size=8",
    "toolkit pretrain --resume run-pretrain --steps 6",
)
PATIENCE = "pretrain.patience"
CHANGEABLE = f"--epochs, --steps, --minutes and --set {PATIENCE}"


def register(app: typer.Typer) -> None:
    """Add `pretrain` to the command line."""

    @command(app, "pretrain", EXAMPLES)
    def pretrain_command(
        session: Session,
        corpus: Annotated[list[str] | None, typer.Option(help="Text: a file, folder or glob; repeatable.")] = None,
        valid: Annotated[list[str] | None, typer.Option(help="Held-out text; default: files named valid…")] = None,
        vocabulary: Annotated[Path | None, typer.Option(help="A vocabulary file; default: made from the text.")] = None,
        preset: Annotated[str | None, typer.Option(help="tiny, small, small-512, medium or original.")] = None,
        epochs: Annotated[float | None, typer.Option(help="Passes over the text.")] = None,
        steps: Annotated[int | None, typer.Option(help="Stop after this many steps.")] = None,
        minutes: Annotated[float | None, typer.Option(help="Stop after this many minutes of training.")] = None,
        seed: Annotated[int | None, typer.Option(help="Seed of everything that is left to chance.")] = None,
        name: Annotated[str | None, typer.Option(help="Name of the run.")] = None,
        resume: Annotated[str | None, typer.Option(help="Resume this run exactly where it stopped.")] = None,
        force: Annotated[
            bool, typer.Option("--force", help="With --resume: even if a process may still be writing the run.")
        ] = False,
        decay_from: Annotated[
            str | None,
            typer.Option(
                help="Start a new run at the latest checkpoint of this one and let the learning rate fall to zero over "
                "--steps or --minutes; the other run stays as it is."
            ),
        ] = None,
    ) -> Report:
        """Train a biLM on your text and export it as a model folder. Ctrl-C stops early and keeps the model."""
        resolved = session.settings(
            pretrain__preset=preset,
            pretrain__epochs=epochs,
            pretrain__steps=steps,
            pretrain__minutes=minutes,
            pretrain__seed=seed,
        )
        settings = resolved.settings
        if sum((bool(corpus), resume is not None, decay_from is not None)) != 1:
            raise UsageError("pretrain takes one of --corpus PATH (a new run), --resume RUN and --decay-from RUN")
        if force and resume is None:
            raise UsageError("--force is for --resume RUN")
        if decay_from is not None and (preset, seed, valid, vocabulary) != (None,) * 4:
            raise UsageError("with --decay-from only --steps or --minutes and --name may be given")
        if resume is not None and (preset, seed, valid, vocabulary, name) != (None,) * 5:
            raise UsageError(f"with --resume only {CHANGEABLE} may change; the rest is the run's own")
        typed = {key for key, source in resolved.sources.items() if source == "--set"}
        free = ("text.processes", PATIENCE)
        fixed = [key for key in sorted(typed) if not key.startswith("paths.") and key not in free]
        if resume is not None and fixed:
            raise UsageError(f"--set {fixed[0]}: with --resume only {CHANGEABLE} may change; the rest is the run's own")
        if decay_from is not None and (epochs is not None or [*fixed, *typed.intersection({PATIENCE})]):
            raise UsageError("with --decay-from only --steps or --minutes and --name may be given")
        import toolkit.pretrain.pretrain as library

        if resume is not None:
            limits = {"epochs": epochs, "steps": steps, "minutes": minutes}
            limits |= {"patience": settings.pretrain.patience} if PATIENCE in typed else {}
            limits = {key: value for key, value in limits.items() if value is not None}
            document = library.resume(settings.paths.runs, resume, limits, force)
        elif decay_from is not None:
            document = library.decay(settings.paths.runs, decay_from, steps, minutes, name)
        else:
            document = library.pretrain(corpus, settings, valid, vocabulary, name)
        perplexity = document["validation_perplexity"]
        text = (
            f"run    {document['run']}\nmodel  {document['model']}\n"
            f"{document['steps']:,} steps, {document['tokens']:,} tokens, "
            f"{document['tokens_per_second']:,.0f} tokens/s ({document['compute_dtype']}), "
            f"peak memory {document['peak_memory_mb']:,} MB\n"
            f"validation perplexity (full softmax, n = {perplexity['n']:,}): {perplexity['mean']:,.1f} "
            f"({by_direction(perplexity['forward'], perplexity['backward'])}); "
            f"unigram {document['unigram_perplexity']:,.0f}\n"
            f"exported step {document['exported_step']:,}, the {document['exported']} of {document['steps']:,} steps"
        )
        last = document["last_validation_perplexity"]
        if document["exported_step"] != document["steps"]:
            text += f"; the last step's validation perplexity (full softmax) is {last['mean']:,.1f}"
        return Report(document, text, exit_code=130 if document["stopped"] else 0)
