"""The shape of a biLM, read from and written to the published `options.json`."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from toolkit.config import Model
from toolkit.errors import FormatError, UsageError
from toolkit.text.chars import N_CHARACTERS

MAX_CHARACTERS = 10_000  # no file holds this number, and each word asks for memory by it
MIN_CHARACTERS = 3  # begin of word, the mark of a sentence, end of word


@dataclass(frozen=True)
class BiLMSpec:
    """The shape of a biLM; `None` clips mean no clipping.

    A model that reads words has a table of `n_words` rows instead of a character CNN; the attributes of the latter are
    then 0 and empty.

    Attributes:
        char_dim: width of a character's vector.
        filters: (width, number) of each convolution.
        n_highway: highway layers behind the convolutions.
        activation: "relu" or "tanh", applied to the pooled convolutions.
        max_characters: C, the two marks of a word included.
        dim: D, the LSTM's cell.
        projection_dim: P, the width of the token layer, of each LSTM's output and of the softmax.
        n_layers: L.
        cell_clip: bound of the cell's absolute value.
        proj_clip: bound of the projected output's absolute value.
        skip: residual from the second layer on.
        n_words: rows of the word table, one a word of the vocabulary; None for character input.
        bidirectional: False for a forward language model alone.
    """

    char_dim: int
    filters: tuple[tuple[int, int], ...]
    n_highway: int
    activation: str
    max_characters: int
    dim: int
    projection_dim: int
    n_layers: int
    cell_clip: float | None
    proj_clip: float | None
    skip: bool
    n_words: int | None = None
    bidirectional: bool = True

    @property
    def reads_words(self) -> bool:
        """Whether the input is rows of a word table instead of characters."""
        return self.n_words is not None

    @property
    def directions(self) -> int:
        """Directions that the LSTMs read in: forward and backward, or forward alone."""
        return 2 if self.bidirectional else 1

    @property
    def n_filters(self) -> int:
        """Width of the concatenated convolutions."""
        return sum(number for _, number in self.filters)

    @property
    def widest_filter(self) -> int:
        """Width of the widest convolution; 0 where there is none."""
        return max((width for width, _ in self.filters), default=0)

    @property
    def width(self) -> int:
        """Width of an embedding: 2P, or P of a forward model."""
        return self.directions * self.projection_dim

    @property
    def has_projection(self) -> bool:
        """Whether the LSTM projects its output (P below D)."""
        return self.projection_dim < self.dim

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> "BiLMSpec":
        """Read the published options, of training or inference (`n_characters` 261 or 262).

        Without `bidirectional`, which published files for inference lack, there are two directions.

        Raises:
            FormatError: a key is missing or a value does not fit; the message names it.
        """
        n_characters = N_CHARACTERS
        try:
            lstm, cnn = options["lstm"], options.get("char_cnn")
            common = {
                "dim": int(lstm["dim"]),
                "projection_dim": int(lstm["projection_dim"]),
                "n_layers": int(lstm.get("n_layers", 1)),
                # As floats: 3 and 3.0 are one shape, and must have one fingerprint.
                **{key: _optional(lstm.get(key)) for key in ("cell_clip", "proj_clip")},
                "skip": bool(lstm.get("use_skip_connections", False)),
                "bidirectional": bool(options.get("bidirectional", True)),
            }
            if cnn is None:
                spec = cls(0, (), 0, "relu", 0, n_words=int(options["n_tokens_vocab"]), **common)
            else:
                n_characters = int(cnn.get("n_characters", N_CHARACTERS))
                spec = cls(
                    char_dim=int(cnn["embedding"]["dim"]),
                    filters=tuple((int(width), int(number)) for width, number in cnn["filters"]),
                    n_highway=int(cnn.get("n_highway") or 0),
                    activation=str(cnn["activation"]),
                    max_characters=int(cnn["max_characters_per_token"]),
                    **common,
                )
        except KeyError as error:
            raise FormatError(f"options.json lacks the key {error.args[0]!r}") from None
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise FormatError(f"options.json holds a value of the wrong kind: {error}") from None
        if n_characters not in (N_CHARACTERS - 1, N_CHARACTERS):
            raise FormatError(f"options.json says n_characters {n_characters}; byte-level models have 261 or 262")
        if problem := spec.problem():
            raise FormatError(f"options.json: {problem}")
        return spec

    @classmethod
    def from_settings(cls, settings: Model, vocabulary_size: int) -> "BiLMSpec":
        """Return the shape that the `[model]` table asks for.

        Args:
            settings: the table.
            vocabulary_size: V, rows of the word table where words are the input.

        Raises:
            UsageError: two settings do not fit together; the message names both values.
        """
        words = settings.input == "words"
        spec = cls(
            char_dim=0 if words else settings.char_dim,
            filters=() if words else tuple(settings.filters),
            n_highway=0 if words else settings.n_highway,
            activation="relu" if words else settings.activation,
            max_characters=0 if words else settings.max_characters_per_token,
            dim=settings.dim,
            projection_dim=settings.projection_dim,
            n_layers=settings.n_layers,
            cell_clip=settings.cell_clip or None,
            proj_clip=settings.proj_clip or None,
            skip=settings.use_skip_connections,
            n_words=vocabulary_size if words else None,
            bidirectional=settings.bidirectional,
        )
        if problem := spec.problem():
            raise UsageError(f"the [model] settings make no biLM: {problem}")
        return spec

    def to_settings(self) -> Model:
        """Return the `[model]` table that asks for this shape.

        Raises:
            UsageError: the table cannot say it, as more layers than can be trained.
        """
        characters = {
            "char_dim": self.char_dim,
            "filters": list(self.filters),
            "n_highway": self.n_highway,
            "activation": self.activation,
            "max_characters_per_token": self.max_characters,
        }
        try:
            return Model(
                input="words" if self.reads_words else "characters",
                bidirectional=self.bidirectional,
                **({} if self.reads_words else characters),
                dim=self.dim,
                projection_dim=self.projection_dim,
                n_layers=self.n_layers,
                cell_clip=self.cell_clip or 0.0,
                proj_clip=self.proj_clip or 0.0,
                use_skip_connections=self.skip,
            )
        except ValidationError as error:
            first = error.errors()[0]
            raise UsageError(
                f"this shape cannot be trained: model.{first['loc'][0]} = {first['input']}: {first['msg']}"
            ) from None

    def problem(self) -> str | None:
        """Say which values do not fit together, None where all do."""
        for name in ("dim", "projection_dim", "n_layers", "n_words" if self.reads_words else "char_dim"):
            if getattr(self, name) < 1:
                return f"{name} is {getattr(self, name)}: it must be 1 at least"
        if min((number for pair in self.filters for number in pair), default=1) < 1:
            return f"filters holds a width or number below 1: {list(self.filters)}"
        if not self.reads_words and self.max_characters < MIN_CHARACTERS:
            return f"max_characters_per_token is {self.max_characters}: a sentence mark takes {MIN_CHARACTERS}"
        if self.max_characters > MAX_CHARACTERS:
            return f"max_characters_per_token is {self.max_characters}: it must be {MAX_CHARACTERS} at most"
        if self.activation not in ("relu", "tanh"):
            return f"activation is {self.activation!r}; known are 'relu' and 'tanh'"
        if not self.reads_words and not self.filters:
            return "filters is empty: a model that reads characters needs one at least"
        if self.widest_filter > self.max_characters:
            return f"a filter is {self.widest_filter} wide, a word {self.max_characters} characters"
        if self.projection_dim > self.dim:
            return f"projection_dim {self.projection_dim} is above dim {self.dim}"
        return self._strange_bound()

    def _strange_bound(self) -> str | None:
        if self.n_highway < 0:
            return f"n_highway is {self.n_highway}: it must be 0 at least"
        for name in ("cell_clip", "proj_clip"):
            bound = getattr(self, name)
            if bound is not None and not 0 < bound < math.inf:
                return f"{name} is {bound}: it must be a number above 0, or null for no clipping"
        return None

    def to_options(self) -> dict[str, Any]:
        """Return the published options for inference (`n_characters` 262; `bidirectional` only where it is false)."""
        options: dict[str, Any] = {
            "lstm": {
                "use_skip_connections": self.skip,
                "projection_dim": self.projection_dim,
                "cell_clip": self.cell_clip,
                "proj_clip": self.proj_clip,
                "dim": self.dim,
                "n_layers": self.n_layers,
            }
        }
        if not self.bidirectional:
            options["bidirectional"] = False
        if self.n_words is not None:
            return options | {"n_tokens_vocab": self.n_words}
        options["char_cnn"] = {
            "activation": self.activation,
            "embedding": {"dim": self.char_dim},
            "filters": [list(pair) for pair in self.filters],
            "max_characters_per_token": self.max_characters,
            "n_characters": N_CHARACTERS,
            "n_highway": self.n_highway,
        }
        return options


def _optional(number: float | None) -> float | None:
    return None if number is None else float(number)
