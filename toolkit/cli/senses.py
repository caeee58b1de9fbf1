"""`toolkit senses`."""

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.frame import Report, Session, command

INDEX_EXAMPLES = (
    "toolkit senses index model --tsv words.tsv --name words",
    "toolkit senses index model --text corpus.txt --words bank,spring --json",
)
NEIGHBOURS_EXAMPLES = (
    "toolkit senses neighbours run-senses --word bank --k 5",
    'toolkit senses neighbours run-senses --word bank --text "They sat on the bank of the river." --json',
)


def register(app: typer.Typer) -> None:
    """Add the `senses` group to the command line."""
    group = typer.Typer(help="Occurrences of words and their neighbours by layer.", no_args_is_help=True)
    app.add_typer(group, name="senses")

    @command(group, "index", INDEX_EXAMPLES)
    def index_command(
        session: Session,
        model: Annotated[str | None, typer.Argument(help="A run, a model folder or an NLPL zip.")] = None,
        words: Annotated[str | None, typer.Option(help="Words, commas between; needed for plain sentences.")] = None,
        embeddings: Annotated[Path | None, typer.Option(help="Instead of a model: a dump, of any encoder.")] = None,
        sentences: Annotated[
            Path | None,
            typer.Option(help="The text that the dump was made of; occurrences come from it unless a source is given."),
        ] = None,
        text: Annotated[list[str] | None, typer.Option(help="Text: file, folder or glob; repeatable.")] = None,
        tsv: Annotated[Path | None, typer.Option(help="Table: word, position, sense, sentence; a header.")] = None,
        coarsewsd: Annotated[Path | None, typer.Option(help="The folder of CoarseWSD-20.")] = None,
        wordnet: Annotated[bool, typer.Option("--wordnet", help="WordNet's example sentences.")] = False,
        name: Annotated[str | None, typer.Option(help="Name of the run.")] = None,
    ) -> Report:
        """Keep the vectors of words in their sentences in a run, so that their neighbours can be looked up."""
        settings = session.settings().settings
        from toolkit.errors import UsageError
        from toolkit.senses.sources import choose_source

        wanted = [word.strip() for word in (words or "").split(",") if word.strip()]
        if (model is None) == (embeddings is None) or (embeddings is None) != (sentences is None):
            raise UsageError("give a model, or --embeddings with --sentences, the text that they were made of")
        if embeddings is None:
            from toolkit.embed.models import resolve_model

            path = resolve_model(model, settings.paths.runs)
            source, occurrences = choose_source(wanted, text or (), tsv, coarsewsd, wordnet, settings.text)
            from toolkit.bilm.folder import load_model
            from toolkit.senses.occurrences import index

            document = index(load_model(path), occurrences, wanted, settings, source, name)
        else:
            from toolkit.embed.dumpfile import open_embeddings
            from toolkit.senses.dumped import dumped_source, vectors_of_dump
            from toolkit.senses.keep import keep

            if text or tsv or coarsewsd or wordnet:
                source, occurrences = choose_source(wanted, text or (), tsv, coarsewsd, wordnet, settings.text)
            else:
                source, occurrences = dumped_source(sentences, wanted)
            with open_embeddings(embeddings) as dump:
                document = keep(vectors_of_dump(dump, sentences), occurrences, wanted, settings, source, name)
        counts = ", ".join(f"{word} {count}" for word, count in document["words"].items())
        return Report(
            document,
            f"run {document['run']}\n{document['occurrences']:,} occurrences in {document['sentences']:,} sentences, "
            f"{document['senses']:,} labelled senses, {document['seconds']:.1f} s\n{counts}",
        )

    @command(group, "neighbours", NEIGHBOURS_EXAMPLES)
    def neighbours_command(
        session: Session,
        run: Annotated[str, typer.Argument(metavar="SENSES_RUN", help="A run of `toolkit senses index`.")],
        word: Annotated[str, typer.Option(help="One of the run's words.")],
        sentence: Annotated[int | None, typer.Option(help="Number of the occurrence; default: one a sense.")] = None,
        text: Annotated[
            str | None, typer.Option(help="A free sentence with the word, instead of an occurrence.")
        ] = None,
        k: Annotated[int | None, typer.Option("--k", help="Neighbours shown.")] = None,
    ) -> Report:
        """Show the nearest occurrences of a word in other sentences, layer beside layer, and how pure they are."""
        settings = session.settings(senses__neighbours=k).settings
        import shutil

        from toolkit.errors import UsageError
        from toolkit.senses.describe import choose_queries, neighbours_document, neighbours_text
        from toolkit.senses.find import find_senses, model_of
        from toolkit.senses.neighbours import load

        if text is not None and sentence is not None:
            raise UsageError("--sentence and --text name two queries: give one of them")
        found, path = find_senses(settings.paths.runs, run)
        occurrences = load(path)
        occurrences.of(word)
        if text is None:
            queries = choose_queries(occurrences, word, sentence)
        else:
            model_path = model_of(occurrences, settings.paths.runs)
            from toolkit.bilm.folder import load_model
            from toolkit.senses.occurrences import encode_query

            queries = [encode_query(load_model(model_path), occurrences, text, word, settings)]
        document = neighbours_document(occurrences, queries, settings.senses.neighbours)
        return Report(
            {"run": found.id, **document}, neighbours_text(document, shutil.get_terminal_size((120, 24)).columns)
        )
