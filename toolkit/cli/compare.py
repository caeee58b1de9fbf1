"""`toolkit compare`."""

from typing import Annotated

import typer

from toolkit.cli.frame import Report, Session, command


def register(app: typer.Typer) -> None:
    """Add the `compare` command to the command line."""

    @command(app, "compare", ("toolkit compare run-a run-b", "toolkit compare run-a run-b --json"))
    def compare(
        session: Session,
        a: Annotated[str, typer.Argument(metavar="RUN", help="A run, or the common name of its seeds.")],
        b: Annotated[str, typer.Argument(metavar="RUN", help="The other.")],
    ) -> Report:
        """Compare two runs, or two groups of seeds, on the same test examples: settings, scores, paired test."""
        from toolkit.runs.compare import compare as compare_runs
        from toolkit.runs.describe_comparison import comparison_document, comparison_text

        comparison = compare_runs(session.settings().settings.paths.runs, a, b)
        return Report(comparison_document(comparison), comparison_text(comparison))
