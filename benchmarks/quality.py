"""What a biLM's vectors are worth to a user: three figures for each model, as JSON.

    python benchmarks/quality.py MODEL [MODEL ...] [--data FOLDER] [--store FOLDER]

- `sst2`: accuracy of a linear head on the learned mix, on dev and test (`toolkit evaluate`).
- `senses`: CoarseWSD-20 with three labelled sentences per sense: accuracy of the nearest centroid, the mean over words
  and over the three published draws, for each layer and for all layers side by side.
- `pos`: accuracy of a linear tagger on the learned mix, trained on a tenth of UD EWT.

FOLDER holds `sst2`, `coarsewsd20`, `coarsewsd20_nshot` and `ud_ewt` as they are published.
"""

import argparse
import csv
import json
import lzma
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from toolkit.embed.api import Embedder, load_bilm
from toolkit.text.treebank import moses_tokens

SHOTS = "3"
CHUNK = 500  # sentences encoded at a time
Occurrence = tuple[int, list[str], str]  # place of the word, tokens, sense


def tests_of(folder: Path) -> list[Occurrence]:
    """Read the test sentences of one word."""
    lines = (folder / "test.data.txt").read_text(encoding="utf-8").splitlines()
    gold = (folder / "test.gold.txt").read_text(encoding="utf-8").split()
    rows = (line.split("\t") for line in lines)
    return [(int(place), text.split(), sense) for (place, text), sense in zip(rows, gold, strict=True)]


def shots_of(path: Path) -> dict[tuple[str, str], list[Occurrence]]:
    """Read the labelled sentences by word and draw."""
    found: dict[tuple[str, str], list[Occurrence]] = defaultdict(list)
    with lzma.open(path, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row["n"] == SHOTS:
                found[row["word"], row["set"]].append((int(row["index"]), row["tokens"].split(), row["class"]))
    return found


def vectors_of(bilm: Embedder, occurrences: list[Occurrence]) -> np.ndarray:
    """Return the word's vectors in its sentences, float32 [n, L+2, …], all layers side by side last, of length 1."""
    found = []
    for start in range(0, len(occurrences), CHUNK):
        part = occurrences[start : start + CHUNK]
        for (place, _, _), layers in zip(part, bilm.embed(moses_tokens(t) for _, t, _ in part), strict=True):
            found.append(layers[:, place])
    units = np.stack(found)
    units /= np.maximum(np.linalg.norm(units, axis=-1, keepdims=True), 1e-9)
    return units


def accuracy(train: np.ndarray, senses: np.ndarray, test: np.ndarray, gold: np.ndarray) -> float:
    """Return the accuracy in % of the nearest centroid by cosine; vectors [n, D]."""
    names = np.unique(senses)
    centroids = np.stack([train[senses == name].mean(0) for name in names])
    centroids /= np.linalg.norm(centroids, axis=-1, keepdims=True)
    return 100 * float((names[(test @ centroids.T).argmax(1)] == gold).mean())


def measure_senses(bilm: Embedder, data: Path) -> dict[str, float]:
    """Return the mean accuracy over words and draws by layer."""
    shots = shots_of(data / "coarsewsd20_nshot" / "nshot.tsv.xz")
    figures: dict[str, list[float]] = defaultdict(list)
    for word in sorted({word for word, _ in shots}):
        tests = tests_of(data / "coarsewsd20" / word)
        test, gold = vectors_of(bilm, tests), np.array([sense for *_, sense in tests])
        for (other, _), rows in shots.items():
            if other != word:
                continue
            train, senses = vectors_of(bilm, rows), np.array([sense for *_, sense in rows])
            for layer in range(train.shape[1]):
                figures[f"layer {layer}"].append(accuracy(train[:, layer], senses, test[:, layer], gold))
            flat = [vectors.reshape(len(vectors), -1) for vectors in (train, test)]
            figures["all layers"].append(accuracy(flat[0], senses, flat[1], gold))
    return {layer: round(float(np.mean(values)), 1) for layer, values in figures.items()}


def measure_task(model: str, store: Path, task: str, options: Iterable[str] = ()) -> dict[str, float]:
    """Return dev and test accuracy in % of a linear head on the learned mix."""
    command = [sys.executable, "-m", "toolkit.cli.main", "evaluate", "--task", task, "--model", model]
    command += ["--mix", "learned", "--head", "linear", "--set", f"paths.runs={store}", "--json", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    (row,) = json.loads(done.stdout)["rows"]
    return {split: round(100 * row[split], 1) for split in ("dev", "test")}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL", help="a run's folder or a model folder")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--store", type=Path, default=Path("runs"), help="where the classifiers' runs are written")
    options = parser.parse_args()
    for model in options.models:
        start = time.monotonic()
        own = ["--data", str(options.data)]
        result = {
            "model": model,
            "senses": measure_senses(load_bilm(model), options.data),
            "sst2": measure_task(model, options.store, "sst2", own),
            "pos": measure_task(model, options.store, "ud_pos", [*own, "--train-fraction", "0.1"]),
            "seconds": round(time.monotonic() - start),
        }
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
