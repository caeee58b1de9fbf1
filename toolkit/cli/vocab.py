"""`toolkit vocab`."""

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.frame import Report, Session, command

BUILD = (
    "toolkit vocab build corpus.txt --out vocab.txt",
    "toolkit vocab build corpus.txt --out small.txt --size 40 --min-count 1 --json",
)
CHECK = (
    "toolkit vocab check model/vocab.txt",
    "toolkit vocab check model/vocab.txt --corpus corpus.txt --json",
)


def register(app: typer.Typer) -> None:
    """Add the `vocab` group to the command line."""
    group = typer.Typer(help="Vocabulary files: build one from text, check one.", no_args_is_help=True)
    app.add_typer(group, name="vocab")

    @command(group, "build", BUILD)
    def build_command(
        session: Session,
        corpus: Annotated[list[str], typer.Argument(help="Text: files, folders or globs.")],
        out: Annotated[Path, typer.Option("--out", "-o", help="The vocabulary file to write.")],
        valid: Annotated[list[str] | None, typer.Option(help="Held-out text; default: files named valid…")] = None,
        size: Annotated[int | None, typer.Option(help="Entries, the three special tokens included.")] = None,
        min_count: Annotated[int | None, typer.Option(help="Leave rarer words out.")] = None,
    ) -> Report:
        """Write the vocabulary that pretraining would make of a text, and show how much of the text it covers."""
        settings = session.settings(vocabulary__size=size, vocabulary__min_count=min_count).settings
        from toolkit.text.vocabbuild import build

        document = build(corpus, valid, settings, out)
        tokens, left = document["tokens"], document["left_out"]
        lines = [
            f"{out}: {document['words']:,} entries, {document['distinct_words']:,} distinct words in "
            f"{tokens['train']:,} tokens of {document['input']} training text, {tokens['valid']:,} tokens held out",
            f"left out: {left['rare']:,} words that occur less than {document['min_count']} times, "
            f"{left['size']:,} for the size of {document['size']:,}"
            + (f"; equal to a special token: {', '.join(left['reserved'])}" if left["reserved"] else ""),
            "",
            f"{'size':>9} {'covers training text':>21} {'held-out text':>14}",
        ]
        for row in document["sizes"]:
            mark = "  this file" if row["size"] == document["words"] else ""
            lines.append(f"{row['size']:9,} {row['train']:21.2%} {row['valid']:14.2%}{mark}")
        return Report(document, "\n".join(lines))

    @command(group, "check", CHECK)
    def check_command(
        session: Session,
        file: Annotated[Path, typer.Argument(help="A vocabulary: UTF-8, one word a line.")],
        corpus: Annotated[list[str] | None, typer.Option(help="Text that it should fit; repeatable.")] = None,
    ) -> Report:
        """List what is wrong with a vocabulary file, by line; exit code 1 where training would refuse it."""
        settings = session.settings().settings
        from toolkit.text.problems import describe, totals
        from toolkit.text.vocabcheck import check

        document = check(file, corpus or [], settings)
        lines = [
            f"{file}: {document['words']:,} words, {totals(document)}",
            *describe(document["problems"]),
        ]
        if fit := document.get("corpus"):
            correlation = fit["rank_correlation"]
            lines += [
                f"covers {fit['coverage']['train']:.2%} of {fit['tokens']['train']:,} training tokens, "
                f"{fit['coverage']['valid']:.2%} of {fit['tokens']['valid']:,} held-out tokens; "
                f"{fit['absent']:,} of its words are not in the training text",
                f"falling frequency: {'yes' if fit['in_order'] else 'no'}"
                + (f", rank correlation {correlation:.3f}" if correlation is not None else ""),
            ]
        return Report(document, "\n".join(lines), exit_code=1 if document["errors"] else 0)
