"""`toolkit corpus`."""

from typing import Annotated, Any

import typer

from toolkit.cli.frame import Report, Session, command

EXAMPLES = (
    "toolkit corpus check corpus.txt",
    "toolkit corpus check corpus.txt sentences.txt --json",
)
LISTED = 20  # files beyond which only their number is printed


def register(app: typer.Typer) -> None:
    """Add the `corpus` group to the command line."""
    group = typer.Typer(help="Text for pretraining: check it.", no_args_is_help=True)
    app.add_typer(group, name="corpus")

    @command(group, "check", EXAMPLES)
    def check_command(
        session: Session,
        corpus: Annotated[list[str], typer.Argument(help="Text: files, folders or globs.")],
    ) -> Report:
        """Say what a text is and what is wrong with it before you train; exit code 1 where training would refuse it."""
        settings = session.settings().settings
        from toolkit.text.corpuscheck import check

        document = check(corpus, settings)
        return Report(document, _text(document), exit_code=1 if document["errors"] else 0)


def _text(document: dict[str, Any]) -> str:
    from toolkit.text.problems import describe, totals

    files, lines = document["files"], document["lines"]
    length = lines["characters"]
    rows = [
        f"{file['file']}: {file['bytes']:,} bytes, {file['encoding']}, {file['input']}, "
        f"{file['lines']:,} lines, {file['tokens']:,} tokens"
        for file in files[:LISTED]
    ]
    rows += [f"… and {len(files) - LISTED:,} more files"] if len(files) > LISTED else []
    rows += [
        "",
        f"files     {len(files):,}, {document['bytes'] / 1e6:,.1f} MB on disk, "
        f"{document['text_bytes'] / 1e6:,.1f} MB of text",
        f"lines     {lines['total']:,}, {lines['blank']:,} blank; {lines['duplicate']:,} of the other "
        f"{lines['text']:,} repeat an earlier one ({lines['duplicate_share']:.2%})",
    ]
    rows += [f"          {row['times']:,} times: {row['file']}, line {row['line']:,}" for row in lines["most_repeated"]]
    if longest := length["longest"]:
        rows.append(
            f"length    median {length['median']:,} characters, 99th percentile {length['percentile_99']:,}, longest "
            f"{longest['characters']:,} ({longest['file']}, line {longest['line']:,})"
        )
    rows += [
        f"text      {document['sentences']:,} sentences, {document['tokens']:,} tokens, "
        f"{document['distinct_words']:,} distinct words",
        "unknown   "
        + ", ".join(f"{row['share']:.2%} at {row['size']:,}" for row in document["out_of_vocabulary"])
        + " (share of the tokens outside a vocabulary of that size)",
        "",
        totals(document),
        *describe(document["problems"]),
        *(f"advice    {sentence}" for sentence in document["advice"]),
        f"{document['seconds']:,} s, peak memory {document['peak_memory_mb']:,} MB",
    ]
    return "\n".join(rows)
