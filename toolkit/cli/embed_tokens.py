"""`toolkit embed-tokens`."""

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.frame import Report, Session, command

EXAMPLES = (
    "toolkit embed-tokens model -o tokens.hdf5",
    "toolkit embed-tokens model --vocabulary model/vocab.txt -o tokens.hdf5 --json",
)


def register(app: typer.Typer) -> None:
    """Add `embed-tokens` to the command line."""

    @command(app, "embed-tokens", EXAMPLES)
    def embed_tokens(
        session: Session,
        model: Annotated[str, typer.Argument(help="A run, a model folder or an NLPL zip.")],
        output: Annotated[Path, typer.Option("--output", "-o", help="The HDF5 file to write.")],
        vocabulary: Annotated[
            Path | None, typer.Option(help="The words, one a line, plain or .gz; else the model's own.")
        ] = None,
    ) -> Report:
        """Write the context-independent vectors of words to an HDF5 file: "embedding", a row a word."""
        store = session.settings().settings.paths.runs
        from toolkit.embed.models import resolve_model

        path = resolve_model(model, store)
        from toolkit.bilm.folder import load_model
        from toolkit.embed.tokendump import dump_tokens

        document = dump_tokens(load_model(path), output, vocabulary)
        notes = ", ".join(f"{document[key]:,} {what}" for key, what in WORTH_SAYING.items() if document[key])
        text = (
            f"{document['output']}: {document['words']:,} words of {document['width']} numbers"
            f"{f' ({notes})' if notes else ''}\n"
            f"{document['words_per_second']:,.0f} words/s, peak memory {document['peak_memory_mb']:,} MB, "
            f"model {document['model_fingerprint']}"
        )
        return Report(document, text)


WORTH_SAYING = {"duplicates": "stand twice", "unknown": "read as <UNK>"}
