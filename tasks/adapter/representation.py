"""What stands for a word: x_k, layers of the biLM, fixed, learned or gated mixes, side by side."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.errors import UsageError, did_you_mean
from toolkit.runs.schema import BAG, FLOORS

FORMS = ("none", "layer:j", "top", "average", "fixed:w0,w1,…", "learned", "gated", "concat")
BESIDE_BAG = f"{BAG}+"  # before any of these: the decision values of a bag of words beside the pooled mix
PLACES = {"input": ("input",), "output": ("output",), "both": ("input", "output")}


def split_mixes(text: str) -> list[str]:
    """Split a comma-separated list of mixes; the numbers behind `fixed:` stay together.

    Raises:
        UsageError: the list names nothing, or one mix twice.
    """
    mixes: list[str] = []
    for part in text.split(","):
        part = part.strip()
        if mixes and mixes[-1].removeprefix(BESIDE_BAG).startswith("fixed:") and _number(part) is not None:
            mixes[-1] += f",{part}"
        elif part:
            mixes.append(part)
    if not mixes:
        raise UsageError(f"no mix in {text!r}: take one of {', '.join(FORMS)}")
    twice = next((mix for mix in mixes if mixes.count(mix) > 1), None)
    if twice:
        raise UsageError(f"the mix {twice!r} stands twice in {text!r}")
    return mixes


@dataclass(frozen=True)
class Representation:
    """The vector of a token: x_k, the mix of the layers, or both.

    Attributes:
        mix: as the user wrote it.
        weights: of the layers, fixed; None where they are learned, side by side, or there is no mix.
        x_k: whether the context-independent vector stands in front.
        n_layers: L+1, the token layer included.
        width: 2P, of each layer; P of a forward model.
        directions: how often layer 0 holds the token vector, side by side.
        names: of x_k and of the mix, for people.
        x_k_width: of an x_k that is not the model's; 0 where it is.
        place: where the mix goes: to the head's "input", beside the states at its "output", or to "both", each with
            weights of its own. x_k is always at the input.
        bag: whether the decision values of a bag of words are beside what the head scores.
    """

    mix: str
    weights: tuple[float, ...] | None
    x_k: bool
    n_layers: int
    width: int
    directions: int = 2
    names: tuple[str, str] = ("x_k", "ELMo")
    x_k_width: int = 0
    place: str = "input"
    bag: bool = False

    @classmethod
    def parse(
        cls,
        mix: str,
        x_k: bool,
        n_layers: int,
        width: int,
        directions: int = 2,
        names: tuple[str, str] = ("x_k", "ELMo"),
        x_k_width: int = 0,
        place: str = "input",
    ) -> "Representation":
        """Read a mix: none, layer:j, top, average, fixed:w0,w1,…, learned, gated or concat, perhaps behind "bag+".

        Raises:
            UsageError: the mix is unknown, does not fit the number of layers, or leaves nothing over.
        """
        form = mix.removeprefix(BESIDE_BAG)
        check_form(mix)
        if form == "none" and not x_k:
            raise UsageError("mix 'none' without x_k leaves no vector: take --x-k or another mix")
        if place == "output" and not x_k:
            raise UsageError("a mix at the output alone leaves the input without a vector: take --x-k or both places")
        if form == "none":
            place = "input"
        shape = (x_k, n_layers, width, directions, names, x_k_width, place)
        return cls(mix, _weights(form, n_layers), *shape, bag=form != mix)

    @property
    def form(self) -> str:
        """The mix without the bag of words."""
        return self.mix.removeprefix(BESIDE_BAG)

    @property
    def learned(self) -> bool:
        """Whether the weights of the layers are trained with the classifier."""
        return self.form in ("learned", "gated")

    @property
    def places(self) -> tuple[str, ...]:
        """Where a mix goes: none, one or both of "input" and "output"."""
        return () if self.form == "none" else PLACES[self.place]

    @property
    def token_width(self) -> int:
        """The width of the context-independent vector: P of the model's own."""
        return self.x_k_width or self.width // self.directions

    @property
    def mix_width(self) -> int:
        """The width of the mix."""
        return {"none": 0, "concat": self.n_layers * self.width}.get(self.form, self.width)

    @property
    def size(self) -> int:
        """F, the width of the whole vector at the head's input."""
        return (self.token_width if self.x_k else 0) + (self.mix_width if "input" in self.places else 0)

    @property
    def shape_text(self) -> str:
        """Say what stands where: "[x_k 128; ELMo 256] -> 384", with ", output [ELMo 256]" where it is there too."""
        mix = f"{self.names[1]} {self.mix_width}"
        parts = [f"{self.names[0]} {self.token_width}"] if self.x_k else []
        parts += [mix] if "input" in self.places else []
        output = f", output [{mix}]" if "output" in self.places else ""
        return f"[{'; '.join(parts)}] -> {self.size}{output}{', bag' if self.bag else ''}"


def check_form(mix: str) -> None:
    """Refuse what is no mix whatever the number of layers.

    Raises:
        UsageError: the mix is a floor or unknown.
    """
    form, _, argument = mix.removeprefix(BESIDE_BAG).partition(":")
    if form in FLOORS:
        raise UsageError(
            f"mix {mix!r}: {' and '.join(FLOORS)} are in every table unless --no-floors is given; as a mix take "
            f"one of {', '.join(FORMS)}"
        )
    if form in ("layer", "fixed") if argument else form in ("none", "top", "average", "learned", "gated", "concat"):
        return
    raise UsageError(f"unknown mix {mix!r}: {did_you_mean(mix, FORMS)}")


def _weights(mix: str, n_layers: int) -> tuple[float, ...] | None:
    form, _, argument = mix.partition(":")
    if mix in ("none", "learned", "gated", "concat"):
        return None
    if mix == "average":
        return (1.0 / n_layers,) * n_layers
    if mix == "top":
        return _one_hot(n_layers - 1, n_layers)
    if form == "layer":
        if not (argument.isascii() and argument.isdigit()) or int(argument) >= n_layers:
            raise UsageError(f"mix {mix!r}: there are the layers 0 to {n_layers - 1}, 0 being the token layer")
        return _one_hot(int(argument), n_layers)
    return _fixed(mix, argument.split(","), n_layers)


def _fixed(mix: str, texts: Sequence[str], n_layers: int) -> tuple[float, ...]:
    numbers = [_number(text) for text in texts]
    if None in numbers or len(numbers) != n_layers:
        raise UsageError(f"mix {mix!r}: it asks for {n_layers} numbers, one a layer, layer 0 first")
    return tuple(number for number in numbers if number is not None)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _one_hot(index: int, n: int) -> tuple[float, ...]:
    return tuple(float(i == index) for i in range(n))
