"""`toolkit compare`."""

from typing import Annotated

import typer

from toolkit.cli.frame import Report, Session, command


def register(app: typer.Typer) -> None:
    """Add the `compare` command to the command line."""

    @command(app, "compare", ("toolkit compare run-a run-b", "toolkit compare run-a run-b --json"))
    def compare_command(
        session: Session,
        runs: Annotated[
            list[str],
            typer.Argument(
                metavar="RUN", help="Two or more runs, or common names of seeds; the first is the baseline."
            ),
        ],
    ) -> Report:
        """Compare runs, or groups of seeds, on the same test examples: settings, scores, paired test.

        Several comparisons get p-values with Holm's correction.
        """
        from toolkit.errors import UsageError
        from toolkit.runs import describe_comparison as describe
        from toolkit.runs.compare import compare_with
        from toolkit.runs.find import find_runs

        if len(runs) < 2:
            raise UsageError(f"two runs or more can be compared, got {runs[0]!r} alone")
        store = session.settings().settings.paths.runs
        baseline, *others = [find_runs(store, run) for run in runs]
        comparisons = compare_with(baseline, others)
        if len(comparisons) == 1:
            return Report(describe.comparison_document(comparisons[0]), describe.comparison_text(comparisons[0]))
        return Report(describe.comparisons_document(comparisons), describe.comparisons_text(comparisons))
