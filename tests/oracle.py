"""A slow, plain float64 biLM that reads the published files itself: the reference for the toolkit's own.

It shares no code with the toolkit. Tensors: T tokens (both sentence marks included), C characters, L LSTM layers,
P projection, D cell. The arithmetic is that of Peters et al. 2018, section 3, in the published weights' layout.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np

BOS, EOS = "<S>", "</S>"
# One row per direction and layer: cell [D] and output [P].
State = list[list[tuple[np.ndarray, np.ndarray]]]


class Oracle:
    """The forward pass of one model.

    Attributes:
        weights: float64 arrays by dataset name; tests change them to see a comparison fail.
        options: the parsed options.json.
    """

    def __init__(self, options: Path, weights: Path) -> None:
        self.options = json.loads(options.read_text(encoding="utf-8"))
        self.weights: dict[str, np.ndarray] = {}
        with h5py.File(weights, "r") as file:
            file.visititems(self._keep)
        self.forget_bias = 1.0
        self.directions = 2 if self.options.get("bidirectional", True) else 1
        if "char_cnn" not in self.options:
            self.words = (weights.parent / "vocab.txt").read_text(encoding="utf-8").splitlines()

    def _keep(self, name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            self.weights[name] = item[()].astype(np.float64)

    def zero_state(self) -> State:
        """Return the state before anything was read."""
        lstm = self.options["lstm"]
        zero = (np.zeros(lstm["dim"]), np.zeros(lstm["projection_dim"]))
        return [[zero] * lstm["n_layers"] for _ in range(self.directions)]

    def token(self, word: str) -> np.ndarray:
        """Return the context-independent vector of one word, [P]."""
        if "char_cnn" not in self.options:
            return self.weights["embedding"][self.words.index(word if word in self.words else "<UNK>")]
        cnn = self.options["char_cnn"]
        size = cnn["max_characters_per_token"]
        if word == BOS:
            ids = [258, 256, 259]
        elif word == EOS:
            ids = [258, 257, 259]
        else:
            ids = [258, *word.encode("utf-8")[: size - 2], 259]
        ids += [260] * (size - len(ids))
        characters = np.stack([self.weights["char_embed"][i] for i in ids])
        pooled = []
        for i, (width, _) in enumerate(cnn["filters"]):
            kernel = self.weights[f"CNN/W_cnn_{i}"][0]
            values = [
                np.einsum("wd,wdn->n", characters[at : at + width], kernel) for at in range(len(characters) - width + 1)
            ]
            pooled.append(np.max(values, axis=0) + self.weights[f"CNN/b_cnn_{i}"])
        x = np.concatenate(pooled)
        x = np.maximum(x, 0) if cnn["activation"] == "relu" else np.tanh(x)
        for i in range(cnn.get("n_highway") or 0):
            high = {
                name: self.weights[f"CNN_high_{i}/{name}"]
                for name in ("W_carry", "b_carry", "W_transform", "b_transform")
            }
            gate = sigmoid(x @ high["W_carry"] + high["b_carry"])
            x = gate * np.maximum(x @ high["W_transform"] + high["b_transform"], 0) + (1 - gate) * x
        if "CNN_proj/W_proj" in self.weights:
            x = x @ self.weights["CNN_proj/W_proj"] + self.weights["CNN_proj/b_proj"]
        return x

    def encode(
        self, tokens: Sequence[str], state: State | None = None, marks: bool = False
    ) -> tuple[np.ndarray, State]:
        """Return the layers of one sentence, [L+1, T-2, 2P] or with its marks [L+1, T, 2P], and the state behind it.

        A model that reads forward only gives P for 2P.
        """
        x = np.stack([self.token(word) for word in (BOS, *tokens, EOS)])
        before = self.zero_state() if state is None else state
        halves, after = [], []
        for direction in range(self.directions):
            layers, states = self._direction(direction, x if direction == 0 else x[::-1], before[direction])
            halves.append(layers if direction == 0 else layers[:, ::-1])
            after.append(states)
        layers = np.concatenate(halves, axis=-1)
        layers = np.concatenate([np.concatenate([x] * self.directions, -1)[None], layers])
        return layers if marks else layers[:, 1:-1], after

    def _direction(self, direction: int, x: np.ndarray, states: list) -> tuple[np.ndarray, list]:
        lstm = self.options["lstm"]
        outputs, after = [], []
        for layer in range(lstm["n_layers"]):
            y, state = self._cell(f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell", x, states[layer])
            x = x + y if layer and lstm.get("use_skip_connections") else y
            outputs.append(x)
            after.append(state)
        return np.stack(outputs), after

    def _cell(self, name: str, x: np.ndarray, state: tuple) -> tuple[np.ndarray, tuple]:
        lstm, (c, h) = self.options["lstm"], state
        outputs = []
        for vector in x:
            z = np.concatenate([vector, h]) @ self.weights[f"{name}/W_0"] + self.weights[f"{name}/B"]
            i, j, f, o = np.split(z, 4)
            c = bounded(sigmoid(f + self.forget_bias) * c + sigmoid(i) * np.tanh(j), lstm.get("cell_clip"))
            h = sigmoid(o) * np.tanh(c)
            if f"{name}/W_P_0" in self.weights:
                h = bounded(h @ self.weights[f"{name}/W_P_0"], lstm.get("proj_clip"))
            outputs.append(h)
        return np.stack(outputs), (c, h)


def write_random_softmax(folder: Path, seed: int) -> None:
    """Give a model that has a vocabulary an output layer with random weights, which prefers some words clearly."""
    words = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    p = json.loads((folder / "options.json").read_text(encoding="utf-8"))["lstm"]["projection_dim"]
    rng = np.random.default_rng(seed)
    with h5py.File(folder / "softmax.h5", "w") as file:
        file["softmax/W"] = rng.normal(0, 2, (len(words), p)).astype(np.float32)
        file["softmax/b"] = rng.normal(0, 1, len(words)).astype(np.float32)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def bounded(x: np.ndarray, bound: float | None) -> np.ndarray:
    return x if bound is None else np.clip(x, -bound, bound)


def write_random_model(
    folder: Path,
    seed: int,
    words: Sequence[str] = (),
    reads_words: bool = False,
    bidirectional: bool = True,
    **changes: object,
) -> Path:
    """Write a model with random weights in the published layout and return its folder.

    Args:
        folder: made when missing.
        seed: of the weights, which are large enough for states, clips and long contexts to matter.
        words: of vocab.txt behind the three special tokens; none, no vocab.txt.
        reads_words: the input is a word table instead of a character CNN.
        bidirectional: False leaves the backward direction out.
        changes: keys of "lstm" and "char_cnn" that differ from the small default shape.
    """
    options: dict = {
        "lstm": {
            "dim": 24,
            "projection_dim": 8,
            "n_layers": 2,
            "cell_clip": 3,
            "proj_clip": 3,
            "use_skip_connections": True,
        },
        "char_cnn": {
            "embedding": {"dim": 4},
            "filters": [[1, 4], [2, 8], [3, 12]],
            "n_highway": 1,
            "n_characters": 262,
            "max_characters_per_token": 20,
            "activation": "relu",
        },
    }
    for key, value in changes.items():
        options["lstm" if key in options["lstm"] else "char_cnn"][key] = value
    lstm, cnn = options["lstm"], options["char_cnn"]
    n, p, d, dim = sum(m for _, m in cnn["filters"]), lstm["projection_dim"], lstm["dim"], cnn["embedding"]["dim"]
    rng = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {"char_embed": (261, dim)}
    for i, (width, number) in enumerate(cnn["filters"]):
        shapes |= {f"CNN/W_cnn_{i}": (1, width, dim, number), f"CNN/b_cnn_{i}": (number,)}
    for i in range(cnn["n_highway"] or 0):
        shapes |= {f"CNN_high_{i}/W_carry": (n, n), f"CNN_high_{i}/b_carry": (n,)}
        shapes |= {f"CNN_high_{i}/W_transform": (n, n), f"CNN_high_{i}/b_transform": (n,)}
    if n != p:
        shapes |= {"CNN_proj/W_proj": (n, p), "CNN_proj/b_proj": (p,)}
    if reads_words:
        del options["char_cnn"]
        options["n_tokens_vocab"] = 3 + len(words)
        shapes = {"embedding": (3 + len(words), p)}
    if not bidirectional:
        options["bidirectional"] = False
    for direction in range(2 if bidirectional else 1):
        for layer in range(lstm["n_layers"]):
            name = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            shapes |= {f"{name}/W_0": (2 * p, 4 * d), f"{name}/B": (4 * d,)}
            if p != d:
                shapes[f"{name}/W_P_0"] = (d, p)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "options.json").write_text(json.dumps(options), encoding="utf-8")
    with h5py.File(folder / "weights.hdf5", "w") as file:
        for name, shape in shapes.items():
            scale = 1.0 if len(shape) == 1 else 1.5 * np.prod(shape[:-1]) ** -0.5
            file[name] = rng.normal(0, scale, shape).astype(np.float32)
    if words:
        (folder / "vocab.txt").write_text("\n".join(("<S>", "</S>", "<UNK>", *words)) + "\n", encoding="utf-8")
    return folder
