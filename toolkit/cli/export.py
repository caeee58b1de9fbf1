"""`toolkit export`."""

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.frame import Report, Session, command

EXAMPLES = ("toolkit export model -o published", "toolkit export model -o model.zip --softmax --json")


def register(app: typer.Typer) -> None:
    """Add `export` to the command line."""

    @command(app, "export", EXAMPLES)
    def export_command(
        session: Session,
        model: Annotated[str, typer.Argument(help="A run, a model folder or an NLPL zip.")],
        output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write, or an NLPL zip: NAME.zip.")],
        softmax: Annotated[bool, typer.Option("--softmax", help="The output layer too, in a file of its own.")] = False,
    ) -> Report:
        """Write a model for bilm-tf, AllenNLP and simple_elmo: options.json, model.hdf5, vocab.txt."""
        store = session.settings().settings.paths.runs
        from toolkit.embed.models import resolve_model

        path = resolve_model(model, store)
        from toolkit.bilm.export import export
        from toolkit.bilm.folder import load_model

        document = export(load_model(path), output, softmax)
        files = ", ".join(f"{name} ({size:,} bytes)" for name, size in document["files"].items())
        refused = [f"{refusal['reader']} cannot read this: {refusal['reason']}" for refusal in document["refused_by"]]
        text = [f"{document['output']}: {files}", f"model {document['fingerprint']}", *refused]
        return Report(document, "\n".join(text))
