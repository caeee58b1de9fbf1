"""The shape of a biLM, read from and written to the published `options.json`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolkit.errors import FormatError
from toolkit.text.chars import N_CHARACTERS


@dataclass(frozen=True)
class BiLMSpec:
    """The shape of a biLM; `None` clips mean no clipping, and `n_words` is set where words are the input.

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
        n_words: rows of the word table of a model that reads words, not characters; None for character input.
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

    @property
    def n_filters(self) -> int:
        """Width of the concatenated convolutions."""
        return sum(number for _, number in self.filters)

    @property
    def widest_filter(self) -> int:
        """Width of the widest convolution."""
        return max(width for width, _ in self.filters)

    @property
    def width(self) -> int:
        """Width of an embedding: 2P."""
        return 2 * self.projection_dim

    @property
    def has_projection(self) -> bool:
        """Whether the LSTM projects its output (P below D)."""
        return self.projection_dim < self.dim

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> "BiLMSpec":
        """Read the published options, of training or inference (`n_characters` 261 or 262).

        Raises:
            FormatError: a key is missing or a value does not fit; the message names it.
        """
        try:
            lstm, cnn = options["lstm"], options.get("char_cnn")
            common = {
                "dim": int(lstm["dim"]),
                "projection_dim": int(lstm["projection_dim"]),
                "n_layers": int(lstm.get("n_layers", 1)),
                "cell_clip": lstm.get("cell_clip"),
                "proj_clip": lstm.get("proj_clip"),
                "skip": bool(lstm.get("use_skip_connections", False)),
            }
            if cnn is None:
                return cls(0, (), 0, "relu", 0, n_words=int(options["n_tokens_vocab"]), **common)
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
        except (TypeError, ValueError) as error:
            raise FormatError(f"options.json holds a value of the wrong kind: {error}") from None
        spec._check(int(cnn.get("n_characters", N_CHARACTERS)))
        return spec

    def _check(self, n_characters: int) -> None:
        if n_characters not in (N_CHARACTERS - 1, N_CHARACTERS):
            raise FormatError(f"options.json says n_characters {n_characters}; byte-level models have 261 or 262")
        if self.activation not in ("relu", "tanh"):
            raise FormatError(f"options.json says activation {self.activation!r}; known are 'relu' and 'tanh'")
        widest = max((width for width, _ in self.filters), default=0)
        if widest > self.max_characters:
            raise FormatError(f"options.json: a filter is {widest} wide, a word {self.max_characters} characters")
        if self.projection_dim > self.dim:
            raise FormatError(f"options.json: projection_dim {self.projection_dim} is above dim {self.dim}")

    def to_options(self) -> dict[str, Any]:
        """Return the published options for inference (`n_characters` 262)."""
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
