"""Going on with a trained biLM on the text of a domain: what `toolkit adapt` does."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toolkit import config
from toolkit.bilm.folder import VOCABULARY, Model, Softmax, load_model
from toolkit.config import Resolved, Settings, cache_folder
from toolkit.embed.reading import check_text
from toolkit.embed.score import score
from toolkit.errors import DataError, UsageError
from toolkit.files import read_json, sha256
from toolkit.pretrain import vocabularies
from toolkit.pretrain.distribute import refuse_cluster
from toolkit.pretrain.pretrain import ADAPTED, absolute, reopen
from toolkit.pretrain.trainer import Trainer
from toolkit.runs.find import find_run
from toolkit.runs.lock import RunLock
from toolkit.runs.schema import MANIFEST, MODEL, RESULTS
from toolkit.runs.writer import RunWriter
from toolkit.text.prepare import Prepared, prepare
from toolkit.text.vocab import Vocabulary

logger = logging.getLogger(__name__)

OWN, REBUILD = "own", "rebuild"
TYPED = ("environment", "option", "--set")  # sources that mean this very run; a file and a preset mean pretraining too
# [pretrain] keys that [adapt] has its own value for.
OF_ADAPT = tuple(config.Adapt.model_fields)


@dataclass(frozen=True)
class Start:
    """Where an adaptation starts.

    Attributes:
        model: the parent's weights with the vocabulary from now on.
        softmax: the output layer of that vocabulary.
        vocabulary: the JSON record: `from` ("own", "rebuilt", a file), `words`, and for a mapped one `kept`, `new`,
            `left_out`; `softmax` says "own", "mapped" or "fresh".
    """

    model: Model
    softmax: Softmax
    vocabulary: dict[str, Any]


def adapt(
    model: Path,
    corpus: Sequence[str | Path],
    resolved: Resolved,
    valid: Sequence[str | Path] | None = None,
    vocabulary: str | None = None,
    also: Sequence[Path] = (),
    name: str | None = None,
) -> dict[str, Any]:
    """Train a model on, on other text, until its held-out perplexity no longer falls; export the best.

    The shape is the model's; so `[model]` and a preset's shape do not matter. `[adapt]` takes the place of the
    `[pretrain]` values of the same name. Adagrad starts afresh.

    Args:
        model: the parent: a model folder or NLPL zip.
        corpus: files, folders and globs; files named valid… are the held-out text.
        resolved: all settings and where each came from.
        valid: files of held-out text instead.
        vocabulary: "own" keeps the model's vocabulary and output layer; "rebuild" makes a vocabulary from the corpus,
            any other text is a vocabulary file, and the output layer is carried over (`vocabularies.mapped`). None
            takes "own", or "rebuild" where the model has no output layer; that of such a model starts from the corpus's
            unigrams (`vocabularies.unigram`).
        also: tokenised texts, a sentence a line, whose perplexity is measured before and after as `toolkit score` does.
        name: of the run; None takes "adapt-" and the parent's.

    Returns:
        the JSON document of `toolkit pretrain`, whose validation_perplexity is that of the exported model, and:
        `parent` (model, fingerprint), `vocabulary` (see `Start`), `before` (validation perplexity of the start), `also`
        (file, n, unknown, before, after). Before and after are of one vocabulary; under another one perplexities
        do not compare.

    Raises:
        UsageError: a setting contradicts the model's shape, or is one that `[adapt]` decides; the model lacks what
            `vocabulary` asks for; a file is missing.
        FormatError: the model is damaged.
        DataError, ToolkitError: as `pretrain`.
    """
    trainer, origin, settings = begin(model, corpus, resolved, valid, vocabulary, also)
    run = RunWriter.start(
        settings.paths.runs,
        "pretrain",
        name or f"adapt-{_name(Path(model))}",
        settings,
        settings.pretrain.seed,
        model_fingerprint=origin["fingerprint"],
        data_fingerprint=trainer.data_fingerprint,
        extra={
            "corpus": trainer.prepared.description,
            "compute_dtype": trainer.graph.dtype.name,
            "sources": {"corpus": absolute(corpus), "valid": absolute(valid or [])},
            ADAPTED: origin,
        },
    )
    trainer.vocabulary.save(run.folder / VOCABULARY)
    with run:
        run.log(f"adapting {origin['model']} ({origin['fingerprint']}); {_words(origin['vocabulary'])}")
        return _finished(run, trainer, settings, origin)


def begin(
    model: Path,
    corpus: Sequence[str | Path],
    resolved: Resolved,
    valid: Sequence[str | Path] | None = None,
    vocabulary: str | None = None,
    also: Sequence[Path] = (),
) -> tuple[Trainer, dict[str, Any], Settings]:
    """Return a trainer that stands at the parent's weights, what is to be remembered of the start, and the settings.

    Args and errors are those of `adapt`; no run has been made yet.
    """
    refuse_cluster("toolkit adapt")
    for file in also:
        check_text(Path(file))
    parent = load_model(model)
    settings = settings_for(parent, resolved)
    choice = vocabulary or (OWN if parent.has_softmax else REBUILD)
    if choice not in (OWN, REBUILD) and not Path(choice).is_file():
        raise UsageError(f"--vocab {choice}: no such file; it takes {OWN}, {REBUILD} or a vocabulary file")
    softmax = parent.softmax() if parent.has_softmax or choice == OWN else None
    prepared = prepare(corpus, valid, settings.text, settings.pretrain.valid_fraction, cache_folder(settings))
    start = _start(parent, softmax, choice, prepared, settings)
    logger.info("%s", _words(start.vocabulary))
    trainer = Trainer(prepared, start.model.vocabulary, settings)
    origin = {
        "model": str(Path(model).absolute()),
        "fingerprint": parent.fingerprint,
        "made_by": parent.card.get("made_by"),
        "run": parent.card.get("run"),
        "vocabulary": start.vocabulary,
        "before": trainer.begin_with(start.model.bilm, start.softmax).document(),
        "also": [_measured(start.model, file, settings, start.softmax) for file in also],
    }
    trainer.origin = _card(origin)
    return trainer, origin, settings


def resume(store: Path, run_text: str, limits: Mapping[str, Any], force: bool = False) -> dict[str, Any]:
    """Resume an adaptation from its latest sound checkpoint, as `pretrain.resume` does.

    Raises:
        UsageError, DataError, FormatError: as `pretrain.resume`; a text of `also` is missing or has changed.
    """
    refuse_cluster("toolkit adapt")
    with RunLock(find_run(store, run_text).folder, force) as lock:
        run, trainer, settings = reopen(store, run_text, limits, adapted=True, running=force)
        origin = run.manifest["extra"][ADAPTED]
        for text in origin["also"]:
            check_text(Path(text["file"]))
            if sha256(Path(text["file"])) != text["sha256"]:
                raise DataError(f"{text['file']} has changed since {run.summary.id} began: its figures do not compare")
        trainer.origin = _card(origin)
        with RunWriter.resume(run.summary.folder, settings, trainer.step, lock) as writer:
            return _finished(writer, trainer, settings, origin)


def settings_for(parent: Model, resolved: Resolved) -> Settings:
    """Return the settings of the run: the shape is the model's, and `[adapt]` stands for `[pretrain]` where it can.

    Raises:
        UsageError: `--set` or the environment asks for another shape, or for a value that `[adapt]` decides.
    """
    settings = resolved.settings
    shape = parent.spec.to_settings()
    for key, value in shape.model_dump(mode="json").items():
        dotted = f"model.{key}"
        asked = resolved.flat()[dotted]
        if asked != value and resolved.sources[dotted] in TYPED:
            raise UsageError(
                f"{dotted} = {asked} ({resolved.sources[dotted]}), but {parent.path} has {value}: an adapted model "
                f"keeps its shape"
            )
    for key in OF_ADAPT:
        if resolved.sources[f"pretrain.{key}"] in TYPED:
            raise UsageError(f"pretrain.{key} is for pretraining: say --set adapt.{key}=…")
    trained = parent.card.get("text", {})
    for key in ("language", "lowercase"):
        if key in trained and trained[key] != getattr(settings.text, key):
            logger.warning(
                "the model was trained with text.%s = %s, this run reads with %s",
                key,
                trained[key],
                getattr(settings.text, key),
            )
    changed = {key: getattr(settings.adapt, key) for key in OF_ADAPT}
    return settings.model_copy(
        update={"model": shape, "pretrain": settings.pretrain.model_copy(update=changed)},
    )


def _start(parent: Model, softmax: Softmax | None, choice: str, prepared: Prepared, settings: Settings) -> Start:
    """Bring the parent's vocabulary and output layer to those that training begins with; see `adapt`."""
    if choice == OWN:
        return Start(parent, softmax, {"from": OWN, "softmax": OWN, "words": len(parent.vocabulary)})
    if choice == REBUILD:
        sizes = settings.vocabulary
        vocabulary = Vocabulary.from_counts(prepared.words, prepared.counts, sizes.size, sizes.min_count)
    else:
        vocabulary = Vocabulary.load(Path(choice))
    record = {"from": "rebuilt" if choice == REBUILD else choice, "words": len(vocabulary)}
    counts = vocabularies.target_counts(prepared, vocabulary)
    bilm, old = parent.bilm, parent.vocabulary
    if parent.spec.reads_words:
        if old is None:
            raise UsageError(f"{parent.path} reads words, not characters: copy its vocab.txt beside the weights")
        bilm = vocabularies.with_vocabulary(bilm, old, vocabulary)
    if softmax is not None:
        softmax = vocabularies.mapped(softmax, old, vocabulary, counts)
        kept = len(old.ids.keys() & vocabulary.ids.keys())
        record |= {"softmax": "mapped", "kept": kept, "new": len(vocabulary) - kept, "left_out": len(old) - kept}
    else:
        softmax = vocabularies.unigram(counts, parent.spec.projection_dim)
        record["softmax"] = "fresh"
    return Start(replace(parent, bilm=bilm, vocabulary=vocabulary), softmax, record)


def _words(record: Mapping[str, Any]) -> str:
    """One line about the vocabulary and the output layer."""
    line = f"vocabulary {record['from']}, {record['words']:,} words; "
    if record["softmax"] == "mapped":
        return (
            f"{line}{record['kept']:,} keep their rows of the softmax, {record['new']:,} new ones start from <UNK>'s, "
            f"{record['left_out']:,} of the model's are left out"
        )
    if record["softmax"] == "fresh":
        return f"{line}the model brings no softmax: a fresh one starts from the unigrams of the corpus"
    return f"{line}the softmax is the model's own"


def _measured(model: Model, file: Path, settings: Settings, softmax: Softmax | None = None) -> dict[str, Any]:
    """A text's perplexity by the protocol of `toolkit score`."""
    found = score(model, Path(file), settings.embed.state, settings.embed.batch_tokens, softmax)
    return {
        "file": str(Path(file).absolute()),
        "sha256": sha256(Path(file)),
        "n": found["targets"],
        "unknown": found["unknown"],
        "forward": found["perplexity_forward"],
        "backward": found["perplexity_backward"],
        "mean": found["perplexity"],
    }


def _finished(run: RunWriter, trainer: Trainer, settings: Settings, origin: Mapping[str, Any]) -> dict[str, Any]:
    """Train to the end and measure the exported model on the other texts."""
    document = trainer.run(run)
    figures = ("forward", "backward", "mean")
    texts = []
    if origin["also"]:
        adapted = load_model(run.folder / MODEL)
        for before in origin["also"]:
            after = _measured(adapted, Path(before["file"]), settings)
            texts.append(
                {key: before[key] for key in ("file", "n", "unknown")}
                | {"before": {key: before[key] for key in figures}, "after": {key: after[key] for key in figures}}
            )
    results = read_json(run.folder / RESULTS)
    common = {"kind": "full", "higher_is_better": False}
    results["metrics"].append(
        {"name": "perplexity_before", "split": "valid", "value": origin["before"]["mean"], "n": origin["before"]["n"]}
        | common
    )
    for text in texts:
        split = Path(text["file"]).name
        for name, moment in (("perplexity", "after"), ("perplexity_before", "before")):
            results["metrics"].append(
                {"name": name, "split": split, "value": text[moment]["mean"], "n": text["n"]} | common
            )
    run.results(results)
    return document | {
        "parent": {key: origin[key] for key in ("model", "fingerprint")},
        "vocabulary": origin["vocabulary"],
        "before": origin["before"],
        "also": texts,
    }


def describe(document: Mapping[str, Any]) -> str:
    """Return the document of `adapt` as text."""
    before, after = document["before"], document["validation_perplexity"]
    lines = [
        f"run    {document['run']}",
        f"model  {document['model']}",
        f"from   {document['parent']['model']} ({document['parent']['fingerprint']})",
        _words(document["vocabulary"]),
        f"{document['steps']:,} steps, {document['tokens']:,} tokens, {document['tokens_per_second']:,.0f} tokens/s "
        f"({document['compute_dtype']}), peak memory {document['peak_memory_mb']:,} MB",
        "perplexity (full softmax)                        n    before     after",
    ]
    rows = [("held-out text of the corpus", after["n"], before["mean"], after["mean"])]
    rows += [(Path(t["file"]).name, t["n"], t["before"]["mean"], t["after"]["mean"]) for t in document["also"]]
    lines += [f"{name:37}  {n:11,}  {first:8,.1f}  {last:8,.1f}" for name, n, first, last in rows]
    lines.append(f"unigrams of the corpus on its held-out text: {document['unigram_perplexity']:,.0f}")
    if document["exported_step"] == 0:
        lines.append("no validation was better than the first: the exported weights are those of the start")
    return "\n".join(lines)


def _card(origin: Mapping[str, Any]) -> dict[str, Any]:
    """What the card says of the parent."""
    return {"adapted_from": {key: origin[key] for key in ("model", "fingerprint", "made_by", "run", "vocabulary")}}


def _name(parent: Path) -> str:
    """What a person would call the parent: the name of its run, or of its folder or zip."""
    manifest = parent.absolute().parent / MANIFEST
    return read_json(manifest)["name"] if manifest.is_file() else parent.absolute().stem
