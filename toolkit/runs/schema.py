"""The run folder: file names, the manifest's keys, statuses, and which settings make two runs the same experiment."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic checks typing's own only from Python 3.12 on

from toolkit.config import Settings, flatten
from toolkit.files import fingerprint

SCHEMA_VERSION = 1

MANIFEST = "run.json"
CONFIG = "config.toml"
METRICS = "metrics.jsonl"
RESULTS = "results.json"
PREDICTIONS = "predictions.parquet"
LAYERS = "layers.json"
NOTES = "notes.json"
LOG = "log.txt"
MODEL = "model"  # folder of a pretrain run's exported model
OCCURRENCES = "occurrences.h5"  # of a senses run

Kind = Literal["pretrain", "evaluate", "senses"]
KINDS: tuple[Kind, ...] = ("pretrain", "evaluate", "senses")

# Written by the run itself …
RUNNING, DONE, STOPPED, FAILED, KILLED = "running", "done", "stopped", "failed", "killed"
# … and what a reader makes of a "running" whose process has gone (crashed) or has been silent for too long (stalled).
STALLED, CRASHED = "stalled", "crashed"
UNREADABLE = "unreadable"  # … or of a folder that it cannot read as a run

HEARTBEAT_SECONDS = 10.0
RUN_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")  # no separator and no leading dot: never a path out of the store
RUN_FOLDER = re.compile(rf"\d{{8}}T\d{{6}}-({'|'.join(KINDS)})-(.+)")  # kind and name

# The settings that can change what a run of a kind computes. Everything else in config.toml is of no account to it.
SECTIONS: dict[str, tuple[str, ...]] = {
    "pretrain": ("text", "vocabulary", "model", "pretrain"),
    "evaluate": ("embed", "evaluate", "inputs"),
    "senses": ("embed", "senses"),
}
NOISE = frozenset(
    {
        "pretrain.seed",
        "evaluate.seed",
        "evaluate.seeds",
        "senses.seed",
        "senses.neighbours",  # how many are shown
        "text.processes",
        "embed.layers",  # what a dump holds
        "embed.dtype",
        "embed.batch_tokens",
    }
)

# Settings that came later, with the value that does what was done before them: with it a group stays what it was.
LATER = {"evaluate.finetune_rate": 0.0}
# What a run that does not name a setting did, where the default has changed since.
BEFORE = {"evaluate.word_vectors": "model"}

# Mixes without a model, which every evaluation trains for comparison, and the settings that they depend on.
FLOORS = MAJORITY, BAG = "majority", "bag"
FLOOR_SETTINGS = frozenset({"evaluate.mix", "evaluate.head", "evaluate.train_fraction", "evaluate.class_weights"})
INPUTS = "inputs"  # in a manifest's "extra": what the result depends on besides settings, model and data, by content


# What a reader accepts: numbers that every later step (tables, charts, process calls) can hold.
Integer = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
ProcessId = Annotated[int, Field(ge=1, lt=2**31)]


class Manifest(TypedDict):
    """`run.json`. Times are UTC, ISO 8601 with seconds."""

    schema_version: Integer
    id: str
    kind: str
    name: str
    group: str  # fingerprint of settings, task, model and data without the seed: equal for the seeds of one experiment
    seed: Integer
    status: str
    message: NotRequired[str]  # why it failed
    started: str
    ended: str | None
    heartbeat: str
    heartbeat_seconds: Finite  # the interval that the run promises
    progress: Finite | None  # share done, 0 to 1
    seconds_left: Finite | None
    pid: ProcessId
    process_started: str | None  # the kernel's start mark of that pid, so that a reused pid is not taken for the run
    host: str
    argv: list[str]
    versions: dict[str, str]
    git: str | None  # revision of the toolkit's checkout, with "+" behind it when files were changed
    model_fingerprint: str | None
    data_fingerprint: str | None
    extra: dict[str, Any]  # what the kind adds, for instance "task"


class Metric(TypedDict):
    """One score in `results.json`."""

    name: str
    split: str
    value: Finite
    low: NotRequired[Finite]  # 95 % interval
    high: NotRequired[Finite]
    n: NotRequired[Integer]  # examples or tokens behind the value
    higher_is_better: NotRequired[bool]
    best_step: NotRequired[Integer]
    last: NotRequired[Finite]
    kind: NotRequired[str]  # of a perplexity: "full" or "sampled"


class Mix(TypedDict):
    """One entry of `layers.json`: the scalar mix at a logged step."""

    step: NotRequired[Integer]
    seed: NotRequired[Integer]
    weights: list[Finite]  # after the softmax, one for each layer
    gamma: NotRequired[Finite]


def relevant_settings(kind: str, flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return those settings that can change what a run of this kind computes, seeds left out.

    Args:
        kind: "pretrain", "evaluate" or "senses"; another kind (a later version's) keeps every section.
        flat: values by dotted key.
    """
    sections = SECTIONS.get(kind)
    floor = kind == "evaluate" and flat.get("evaluate.mix") in FLOORS
    return {
        key: value
        for key, value in flat.items()
        if key not in NOISE
        and not key.startswith("paths.")
        and (sections is None or key.split(".", 1)[0] in sections)
        and (not floor or key in FLOOR_SETTINGS or key.startswith(f"{INPUTS}."))
    }


def inputs_of(extra: object) -> dict[str, str]:
    """Return the inputs that a manifest's "extra" names, by dotted key, as `relevant_settings` takes them."""
    found = extra.get(INPUTS) if isinstance(extra, Mapping) else None
    return {f"{INPUTS}.{key}": str(value) for key, value in found.items()} if isinstance(found, Mapping) else {}


def group_of(
    kind: str,
    settings: Settings,
    task: str | None,
    model_fingerprint: str | None,
    data_fingerprint: str | None,
    inputs: Mapping[str, str] | None = None,
) -> str:
    """Return the 16 digits that runs of one experiment share whatever their seeds.

    Args:
        kind, settings, task, model_fingerprint, data_fingerprint: of the runs.
        inputs: what else the result depends on, by content: see `INPUTS`.
    """
    flat = flatten(settings.model_dump(mode="json")) | inputs_of({INPUTS: inputs})
    flat = relevant_settings(kind, flat)
    flat = {key: value for key, value in flat.items() if (key, value) not in LATER.items()}
    return fingerprint([kind, flat, task, model_fingerprint, data_fingerprint])
