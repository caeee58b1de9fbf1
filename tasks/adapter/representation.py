"""What stands for a word: x_k, layers of the biLM, fixed or learned mixes, side by side."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.bilm.backend import tf
from toolkit.errors import UsageError, did_you_mean

FORMS = ("none", "layer:j", "top", "average", "fixed:w0,w1,…", "learned")


def split_mixes(text: str) -> list[str]:
    """Split a comma-separated list of mixes; the numbers behind `fixed:` stay together.

    Raises:
        UsageError: the list names nothing, or one mix twice.
    """
    mixes: list[str] = []
    for part in text.split(","):
        part = part.strip()
        if mixes and mixes[-1].startswith("fixed:") and _number(part) is not None:
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
        weights: of the layers, fixed; None where they are learned or there is no mix.
        x_k: whether the context-independent vector stands in front.
        n_layers: L+1, the token layer included.
        width: 2P, of each layer; P of a forward model.
        directions: how often layer 0 holds the token vector, side by side.
    """

    mix: str
    weights: tuple[float, ...] | None
    x_k: bool
    n_layers: int
    width: int
    directions: int = 2

    @classmethod
    def parse(cls, mix: str, x_k: bool, n_layers: int, width: int, directions: int = 2) -> "Representation":
        """Read a mix: none, layer:j, top, average, fixed:w0,w1,… or learned.

        Raises:
            UsageError: the mix is unknown, does not fit the number of layers, or leaves nothing over.
        """
        if mix == "none" and not x_k:
            raise UsageError("mix 'none' without x_k leaves no vector: take --x-k or another mix")
        return cls(mix, _weights(mix, n_layers), x_k, n_layers, width, directions)

    @property
    def learned(self) -> bool:
        """Whether the weights of the layers are trained with the classifier."""
        return self.mix == "learned"

    @property
    def token_width(self) -> int:
        """P, the width of the context-independent vector."""
        return self.width // self.directions

    @property
    def size(self) -> int:
        """F, the width of the whole vector."""
        return (self.token_width if self.x_k else 0) + (0 if self.mix == "none" else self.width)

    @property
    def shape_text(self) -> str:
        """Say what stands where: "[x_k 128; ELMo 256] -> 384"."""
        parts = [f"x_k {self.token_width}"] if self.x_k else []
        parts += [] if self.mix == "none" else [f"ELMo {self.width}"]
        return f"[{'; '.join(parts)}] -> {self.size}"


class ScalarMix(tf.keras.layers.Layer):
    """The learned mix of equation 1 of Peters et al. (2018): gamma * sum over j of softmax(w)_j h_j.

    The w start at zero, that is with equal weights. Their penalty is lambda times the sum of their squares: since the
    softmax takes no notice of a constant, this draws the weights towards equal ones.

    Args:
        n_layers: L+1.
    """

    def __init__(self, n_layers: int) -> None:
        super().__init__()
        self.raw = self.add_weight(shape=(n_layers,), initializer="zeros", name="raw")
        self.gamma = self.add_weight(shape=(), initializer="ones", name="gamma")

    def call(self, layers: tf.Tensor) -> tf.Tensor:
        """Mix float32 [B, T, L+1, 2P] to [B, T, 2P]."""
        return self.gamma * mixed(layers, self.weights_of_layers())

    def weights_of_layers(self) -> tf.Tensor:
        """Return the weights after the softmax, float32 [L+1]; they sum to 1."""
        return tf.nn.softmax(tf.convert_to_tensor(self.raw))

    def penalty(self) -> tf.Tensor:
        """Return the sum of the squares of w, to be multiplied by lambda."""
        return tf.reduce_sum(tf.square(tf.convert_to_tensor(self.raw)))


def mixed(layers: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Return the sum of [B, T, L+1, 2P] over its layers, weighted by [L+1]."""
    return tf.reduce_sum(layers * weights[:, None], 2)


def _weights(mix: str, n_layers: int) -> tuple[float, ...] | None:
    form, _, argument = mix.partition(":")
    if mix in ("none", "learned"):
        return None
    if mix == "average":
        return (1.0 / n_layers,) * n_layers
    if mix == "top":
        return _one_hot(n_layers - 1, n_layers)
    if form == "layer" and argument:
        if not (argument.isascii() and argument.isdigit()) or int(argument) >= n_layers:
            raise UsageError(f"mix {mix!r}: the model has the layers 0 to {n_layers - 1}, 0 being the token layer")
        return _one_hot(int(argument), n_layers)
    if form == "fixed" and argument:
        return _fixed(mix, argument.split(","), n_layers)
    raise UsageError(f"unknown mix {mix!r}: {did_you_mean(mix, FORMS)}")


def _fixed(mix: str, texts: Sequence[str], n_layers: int) -> tuple[float, ...]:
    numbers = [_number(text) for text in texts]
    if None in numbers or len(numbers) != n_layers:
        raise UsageError(f"mix {mix!r}: the model asks for {n_layers} numbers, one a layer, the token layer first")
    return tuple(number for number in numbers if number is not None)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _one_hot(index: int, n: int) -> tuple[float, ...]:
    return tuple(float(i == index) for i in range(n))
