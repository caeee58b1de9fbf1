"""`toolkit embed`."""

import functools
from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.frame import Report, Session, command

EXAMPLES = (
    "toolkit embed model sentences.txt -o sentences.h5",
    "toolkit embed model sentences.txt -o top.h5 --layers top --dtype float16 --resume --json",
)


def register(app: typer.Typer) -> None:
    """Add `embed` to the command line."""

    @command(app, "embed", EXAMPLES)
    def embed(
        session: Session,
        model: Annotated[str, typer.Argument(help="A run, a model folder or an NLPL zip.")],
        file: Annotated[Path, typer.Argument(help="Tokenised text, a sentence a line; .gz, .bz2 and .xz too.")],
        output: Annotated[Path, typer.Option("--output", "-o", help="The HDF5 file to write.")],
        layers: Annotated[str | None, typer.Option(help="all, top, average or a layer's number.")] = None,
        dtype: Annotated[str | None, typer.Option(help="float32 or float16.")] = None,
        state: Annotated[str | None, typer.Option(help="warm, zero or stateful.")] = None,
        compute: Annotated[str | None, typer.Option(help="Matrix products in float32 or bfloat16.")] = None,
        compress: Annotated[bool, typer.Option("--compress", help="Gzip the longer sentences.")] = False,
        index: Annotated[
            bool, typer.Option("--sentence-to-index", help="Write AllenNLP's table of sentences.")
        ] = False,
        resume: Annotated[
            bool, typer.Option("--resume", help="Go on with an unfinished dump, if there is one.")
        ] = False,
        ray: Annotated[str | None, typer.Option(help="Encode on the Ray cluster there; local starts one here.")] = None,
    ) -> Report:
        """Write the contextual embeddings of a text to an HDF5 file: dataset "0" is the first line's, and so on."""
        settings = session.settings(
            embed__layers=layers, embed__dtype=dtype, embed__state=state, embed__compute=compute
        ).settings
        from toolkit.embed.models import resolve_model

        path = resolve_model(model, settings.paths.runs)
        from toolkit.bilm.folder import load_model

        if ray is None:
            from toolkit.embed.dump import dump
        else:
            from toolkit.embed.ray_dump import dump_on_ray

            dump = functools.partial(dump_on_ray, ray)
        document = dump(load_model(path), file, output, settings.embed, compress, index, resume)
        unknown = "" if document["unknown"] is None else f" ({document['unknown']:,} read as <UNK>)"
        text = (
            f"{document['output']}: {document['sentences']:,} sentences, {document['tokens']:,} tokens{unknown}, "
            f"layers {document['layers']}, {document['dtype']}, state {document['state']}\n"
            f"{document['bytes']:,} bytes, {document['tokens_per_second']:,.0f} tokens/s, "
            f"peak memory {document['peak_memory_mb']:,} MB, model {document['model_fingerprint']}"
        )
        return Report(document, text)
