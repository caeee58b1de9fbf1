"""`toolkit score`."""

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.frame import Report, Session, by_direction, command

EXAMPLES = (
    "toolkit score model sentences.txt",
    "toolkit score model sentences.txt --state zero --json",
)


def register(app: typer.Typer) -> None:
    """Add `score` to the command line."""

    @command(app, "score", EXAMPLES)
    def score_command(
        session: Session,
        model: Annotated[str, typer.Argument(help="A pretrain run or its model folder; it needs its softmax.")],
        file: Annotated[Path, typer.Argument(help="Tokenised text, a sentence a line; .gz, .bz2 and .xz too.")],
        state: Annotated[str | None, typer.Option(help="warm, zero or stateful.")] = None,
    ) -> Report:
        """Print each sentence's negative log-likelihood under the full softmax, and the text's perplexity."""
        settings = session.settings(embed__state=state).settings
        from toolkit.embed.models import resolve_model

        path = resolve_model(model, settings.paths.runs)
        from toolkit.bilm.folder import load_model
        from toolkit.embed.score import score

        document = score(load_model(path), file, settings.embed.state, settings.embed.batch_tokens)
        lines = [f"{'line':>7} {'tokens':>7} {'forward':>10} {'backward':>10} {'mean/token':>10}"]
        lines += [
            f"{number:7,} {row['tokens']:7,} {_cell(row['forward_nll'], 3)} {_cell(row['backward_nll'], 3)} "
            f"{_cell(row['mean_nll'], 4)}"
            for number, row in enumerate(document["sentences"], 1)
        ]
        sides = by_direction(document["perplexity_forward"], document["perplexity_backward"], 2)
        lines.append(
            f"perplexity (full softmax, n = {document['targets']:,} a direction, closing marks counted): "
            f"{document['perplexity']:,.2f} ({sides}); {document['unknown']:,} of {document['tokens']:,} "
            f"tokens are <UNK>"
        )
        return Report(document, "\n".join(lines))


def _cell(value: float | None, digits: int) -> str:
    return f"{'-':>10}" if value is None else f"{value:10.{digits}f}"
