"""Typed settings: the defaults, `config.toml`, `TOOLKIT_…` variables and `--set`, with where each value came from."""

import difflib
import functools
import logging
import os
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from toolkit.errors import FormatError, UsageError, did_you_mean
from toolkit.files import read_toml

logger = logging.getLogger(__name__)


class Section(BaseModel):
    """A table of the configuration; unknown keys are refused and values cannot be changed afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _plain_numbers(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse what pydantic would turn into a number (true into 1), and integers that no array can hold."""
        if cls.model_fields[info.field_name or ""].annotation is bool:
            return value
        for part in _parts(value):
            if isinstance(part, bool):
                raise ValueError("a number or text is expected, not true or false")
            if isinstance(part, int) and not -(2**63) <= part < 2**63:
                raise ValueError("the number does not fit into 64 bits")
        return value


def _parts(value: Any) -> Iterator[Any]:
    """Yield the values in lists of lists, however deep."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list | tuple):
            waiting.extend(part)
        else:
            yield part


class Paths(Section):
    """Where things lie."""

    runs: Path = Path("runs")
    cache: Path | None = None
    cache_bytes: int = Field(20_000_000_000, ge=0)
    data: Path | None = None
    tasks: Path | None = None


class Text(Section):
    """How text becomes sentences of tokens."""

    input: Literal["auto", "raw", "tokenised"] = "auto"
    language: str = "en"
    lowercase: bool = False
    lowercase_paragraphs: float = Field(0.0, ge=0, le=1)
    processes: int = Field(0, ge=0)


class Vocabulary(Section):
    """The words that the softmax predicts."""

    size: int = Field(30_000, ge=4)
    min_count: int = Field(2, ge=1)


class Model(Section):
    """The shape of the biLM; keys and meaning as in the published options.json."""

    input: Literal["characters", "words"] = "characters"
    bidirectional: bool = True
    char_dim: int = Field(16, ge=1)
    filters: list[tuple[int, int]] = [(1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024)]
    n_highway: int = Field(1, ge=0)
    activation: Literal["relu", "tanh"] = "relu"
    max_characters_per_token: int = Field(50, ge=3)
    dim: int = Field(1024, ge=1)
    projection_dim: int = Field(128, ge=1)
    n_layers: int = Field(2, ge=1, le=4)
    cell_clip: float = Field(3.0, ge=0)
    proj_clip: float = Field(3.0, ge=0)
    use_skip_connections: bool = True


class Pretrain(Section):
    """The training of the biLM."""

    preset: Literal["tiny", "small", "small-512", "medium", "original"] = "small"
    batch_size: int = Field(128, ge=1)
    unroll_steps: int = Field(20, ge=2)
    negatives: int = Field(8192, ge=1)
    initial_bias: Literal["unigrams", "zero"] = "unigrams"
    optimizer: Literal["adam", "adagrad"] = "adam"
    learning_rate: float = Field(0.004, gt=0)
    warmup_steps: Annotated[int, Field(ge=0)] | Literal["auto"] = "auto"
    schedule: Literal["cosine", "linear", "constant", "warmup-stable-decay"] = "cosine"
    decay_share: float = Field(0.2, gt=0, le=1)
    average: float = Field(0.0, ge=0, lt=1)
    initial_accumulator: float = Field(1.0, gt=0)
    clip_norm: float = Field(10.0, gt=0)
    dropout: float = Field(0.0, ge=0, lt=1)
    epochs: float = Field(5.0, gt=0)
    steps: int = Field(0, ge=0)
    minutes: float = Field(0.0, ge=0)
    seed: int = Field(1, ge=0)
    validate_minutes: float = Field(3.0, gt=0)
    validate_steps: int = Field(0, ge=0)
    patience: int = Field(0, ge=0)
    checkpoint_minutes: float = Field(5.0, gt=0)
    validation_tokens: int = Field(20_000, ge=100)
    valid_fraction: float = Field(0.01, gt=0, lt=0.5)
    compute_dtype: Literal["auto", "float32", "bfloat16"] = "auto"


class Adapt(Section):
    """Going on with a trained biLM on other text; these stand for the `[pretrain]` values of the same name."""

    learning_rate: float = Field(0.0005, gt=0)
    epochs: float = Field(3.0, gt=0)
    patience: int = Field(3, ge=1)


class Embed(Section):
    """Encoding sentences with a trained biLM."""

    state: Literal["warm", "zero", "stateful"] = "warm"
    layers: str = "all"
    dtype: Literal["float32", "float16"] = "float32"
    compute: Literal["float32", "bfloat16"] = "float32"
    batch_tokens: int = Field(8192, ge=1)


class Evaluate(Section):
    """The training of a task's classifier on the layers of a biLM, frozen or not."""

    mix: str = "learned"
    mix_at: Literal["input", "output", "both"] = "input"
    x_k: bool = True
    word_vectors: str = "trained:100"
    unknown_words: Literal["model", "zeros"] = "model"
    head: str = "bilstm"
    seeds: int = Field(1, ge=1)
    seed: int = Field(1, ge=0)
    hidden: int = Field(64, ge=1)
    batch_size: int = Field(32, ge=1)
    learning_rate: float = Field(0.002, gt=0)
    finetune_rate: float = Field(0.0, ge=0)
    dropout: float = Field(0.3, ge=0, lt=1)
    mix_l2: float = Field(0.001, ge=0)
    class_weights: Literal["equal", "balanced"] = "equal"
    train_fraction: float = Field(1.0, gt=0, le=1)
    clip_norm: float = Field(5.0, gt=0)
    epochs: int = Field(12, ge=1)
    patience: int = Field(3, ge=1)


class Senses(Section):
    """Occurrences of words and their neighbours."""

    neighbours: int = Field(10, ge=1)
    max_occurrences: int = Field(500, ge=2)
    seed: int = Field(1, ge=0)


class Settings(Section):
    """All settings, resolved."""

    paths: Paths = Paths()
    text: Text = Text()
    vocabulary: Vocabulary = Vocabulary()
    model: Model = Model()
    pretrain: Pretrain = Pretrain()
    adapt: Adapt = Adapt()
    embed: Embed = Embed()
    evaluate: Evaluate = Evaluate()
    senses: Senses = Senses()


# Published sizes (allennlp.org/elmo); `tiny` is ours, for demonstrations and tests. A preset gives defaults: every
# other source of a setting wins over it.
PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {
        "vocabulary.size": 8000,
        "model.filters": [(1, 16), (2, 32), (3, 64), (4, 64), (5, 64)],
        "model.dim": 256,
        "model.projection_dim": 64,
        "pretrain.negatives": 1024,
        "pretrain.learning_rate": 0.012,
        "pretrain.validate_minutes": 1.0,
    },
    "small": {},
    # Half the filters of `small`, twice its projection: as fast, with vectors of 512 numbers.
    "small-512": {
        "model.filters": [(1, 16), (2, 16), (3, 32), (4, 64), (5, 128), (6, 256), (7, 512)],
        "model.projection_dim": 256,
        "pretrain.negatives": 4096,
    },
    # Larger models want lower rates; these two are not measured, a training of them takes weeks here.
    "medium": {"model.dim": 2048, "model.projection_dim": 256, "pretrain.learning_rate": 0.002},
    "original": {
        "model.dim": 4096,
        "model.projection_dim": 512,
        "model.n_highway": 2,
        "pretrain.learning_rate": 0.001,
    },
}

# Adagrad divides by the root of all squared gradients so far: its rate is larger, and falls without a schedule.
ADAGRAD: dict[str, Any] = {
    "pretrain.learning_rate": 0.2,
    "pretrain.warmup_steps": 0,
    "pretrain.schedule": "constant",
    "adapt.learning_rate": 0.05,
}

ENVIRONMENT = "TOOLKIT_"
NO_FILE = Path(os.devnull)  # the configuration file that holds nothing
_HEADER = re.compile(rf"^\s*\[({'|'.join(Settings.model_fields)})\]".encode(), re.MULTILINE)  # of a section of ours
NEAR = 0.8  # similarity (difflib) from which a name counts as a misspelling of ours


@dataclass(frozen=True)
class Resolved:
    """Settings and the source of each.

    Attributes:
        settings: the typed settings.
        sources: "default", "preset tiny", a file's path, "environment", "option" or "--set", by dotted key.
    """

    settings: Settings
    sources: Mapping[str, str]

    def flat(self) -> dict[str, Any]:
        """Return every setting by dotted key, as JSON values."""
        return flatten(self.settings.model_dump(mode="json"))


def flatten(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return `{"section.key": value}` for a dictionary of tables."""
    return {f"{section}.{key}": value for section, table in tables.items() for key, value in table.items()}


def known_keys() -> list[str]:
    """Return every dotted key of the configuration, in order."""
    return list(flatten(Settings().model_dump()))


def resolve(
    config: Path | None = None,
    options: Mapping[str, Any] | None = None,
    assignments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Resolved:
    """Put the settings together; later sources win: default, preset, file, environment, option, `--set`.

    Args:
        config: the TOML file; None takes `config.toml` of the working folder where there is one and it is ours;
            `NO_FILE` reads none.
        options: dotted key to value, from command-line options; None values are left out.
        assignments: `section.key=value` texts; the value is read as TOML, else as a plain text.
        environment: variables such as TOOLKIT_PRETRAIN__SEED=3 (two underscores part section and key) and
            TOOLKIT_DATA, TOOLKIT_RUNS, TOOLKIT_CACHE for the three paths; None takes the process's.

    Raises:
        UsageError: a key is unknown (with the nearest known one), a value does not fit, or the file is not TOML.
    """
    layers: list[tuple[str, dict[str, Any]]] = [
        *_from_file(config),
        ("environment", _from_environment(os.environ if environment is None else environment)),
        ("option", {key: value for key, value in (options or {}).items() if value is not None}),
        ("--set", dict(_assignment(text) for text in assignments)),
    ]
    merged: dict[str, Any] = {}
    sources = dict.fromkeys(known_keys(), "default")
    for source, values in layers:
        _check_known(values, source, sources)
        for key, value in values.items():
            merged[key], sources[key] = value, source
    preset = merged.get("pretrain.preset", Pretrain().preset)
    adagrad = ADAGRAD if merged.get("pretrain.optimizer") == "adagrad" else {}
    for source, defaults in (("optimizer adagrad", adagrad), (f"preset {preset}", PRESETS.get(preset, {}))):
        for key, value in defaults.items():
            if key not in merged:
                merged[key], sources[key] = value, source
    return Resolved(_typed(merged, sources), sources)


def from_saved(tables: Mapping[str, Mapping[str, Any]]) -> Settings:
    """Return the settings that a run folder holds, without looking at any other source.

    A run of version 0.1 names no optimizer: it trained with Adagrad at a constant rate, from softmax biases of zero.
    """
    values = flatten(tables)
    if "pretrain.learning_rate" in values and "pretrain.optimizer" not in values:
        values = ADAGRAD | {"pretrain.optimizer": "adagrad", "pretrain.initial_bias": "zero"} | values
    return _typed(values, {})


def cache_folder(settings: Settings) -> Path:
    """Return where prepared corpora, downloads and encoded task data are kept: `paths.cache`, else the user's cache.

    The folder need not exist. Everything in it can be made again; deleting it costs time only.
    """
    if settings.paths.cache is not None:
        return settings.paths.cache.expanduser()
    return Path(platformdirs.user_cache_dir("elmo-toolkit", appauthor=False))


def _typed(values: Mapping[str, Any], sources: Mapping[str, str]) -> Settings:
    tables: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        section, name = key.split(".", 1)
        tables.setdefault(section, {})[name] = value
    try:
        return Settings.model_validate(tables)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"][:2])
        source, reason = sources.get(key, "saved settings"), first["msg"].removeprefix("Value error, ")
        raise UsageError(f"setting {key} = {_short(first['input'])} ({source}) does not fit: {reason}") from None


def _from_file(config: Path | None) -> list[tuple[str, dict[str, Any]]]:
    """Return the settings of a file. The working folder's config.toml may be another program's: then it is left alone.

    Ours has a key of ours, or sections of ours alone (with keys that are wrong).
    """
    path = Path("config.toml") if config is None else config
    if config is NO_FILE or (config is None and not path.is_file()):
        return []
    if not path.exists():
        raise UsageError(f"no configuration file at {path}")
    try:
        tables = read_toml(path)
    except FormatError as error:
        if config is None and not _HEADER.search(path.read_bytes()):
            _note(f"{path.absolute()} has no section of this toolkit and cannot be read as TOML: it is ignored")
            return []
        raise UsageError(str(error)) from None
    values: dict[str, Any] = {}
    for section, table in tables.items():
        if isinstance(table, dict):
            values.update({f"{section}.{key}": value for key, value in table.items()})
    if config is None and not (_names_ours(values) or set(tables) <= set(Settings.model_fields)):
        _note(f"{path.absolute()} has no setting of this toolkit: it is ignored")
        return []
    for section, table in tables.items():
        if not isinstance(table, dict):
            raise UsageError(f"{path}: {section!r} is outside a [section]")
        if section not in Settings.model_fields and not table:
            raise UsageError(f"{path}: unknown section [{section}]: {did_you_mean(section, Settings.model_fields)}")
    return [(str(path), values)]


def _names_ours(keys: Iterable[str]) -> bool:
    """Return whether one of these dotted keys is ours, or would be with a section that is misspelt."""
    for key in keys:
        section, _, name = key.partition(".")
        for near in difflib.get_close_matches(section, Settings.model_fields, cutoff=NEAR):
            if name in Settings.model_fields[near].annotation.model_fields:
                return True
    return False


def _check_known(values: Mapping[str, Any], source: str, known: Collection[str]) -> None:
    for key in values:
        if key not in known:
            raise UsageError(f"unknown setting {_short(key)} ({source}): {did_you_mean(key, known)}")


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings in TOOLKIT_… variables; others of that prefix are ignored unless they look misspelt.

    Raises:
        UsageError: a variable names one of our sections, or almost one of our keys.
    """
    known = {key.replace(".", "__").upper(): key for key in known_keys()}
    known |= {key.upper(): f"paths.{key}" for key in Paths.model_fields}
    values = {}
    for variable, text in environment.items():
        if not variable.startswith(ENVIRONMENT):
            continue
        name = variable[len(ENVIRONMENT) :].upper()
        key = known.get(name)
        if key is not None:
            values[key] = text if key.startswith("paths.") else _value(text, variable)
            continue
        section, two, _ = name.partition("__")
        near = difflib.get_close_matches(name, known, n=1, cutoff=NEAR)
        if near or (two and section.lower() in Settings.model_fields):
            hint = did_you_mean(name, known).replace("'", "") if not near else f"did you mean {ENVIRONMENT}{near[0]}?"
            raise UsageError(f"unknown setting {variable} (environment): {hint}")
        _note(f"the environment variable {variable} is no setting of this toolkit: it is ignored")
    return values


@functools.cache
def _note(text: str) -> None:
    """Warn once in a process: settings are resolved again and again in the dashboard."""
    logger.warning("note: %s", text)


def _assignment(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or "." not in key:
        raise UsageError(f"--set {_short(text)} is not of the form section.key=value")
    return key.strip(), _value(value.strip(), f"--set {key.strip()}")


def _value(text: str, source: str) -> Any:
    """Read a value as TOML, else as a plain text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    except (RecursionError, ValueError):  # a number of thousands of digits
        raise UsageError(f"{source}: the value {_short(text)} is nested too deeply or has too many digits") from None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text):,} characters)"
