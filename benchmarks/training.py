"""What the benchmarks of training share: one configuration and text for both sides, and the peer's trainer."""

import argparse
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
from measure import PEER_ENVIRONMENT

from tasks.demo_text import demo_text
from toolkit.bilm.folder import Softmax, load_model
from toolkit.config import Settings, cache_folder, resolve
from toolkit.pretrain.perplexity import Perplexity
from toolkit.pretrain.trainer import Trainer
from toolkit.text.prepare import Prepared, prepare
from toolkit.text.vocab import Vocabulary

PEER = Path(__file__).parent / "peers" / "simple_elmo_train.py"
PUBLISHED = {
    "dropout": 0.1,
    "all_clip_norm_val": 10.0,
    "learning_rate": 0.2,
    "batch_size": 128,
    "unroll_steps": 20,
    "n_negative_samples_batch": 8192,
}
# The same recipe in settings of this toolkit.
AS_PUBLISHED = {
    "pretrain.optimizer": "adagrad",
    "pretrain.initial_bias": "zero",
    "pretrain.dropout": 0.1,
    "pretrain.batch_size": 128,
    "pretrain.negatives": 8192,
}


def setting(options: argparse.Namespace, budget: Mapping[str, Any]) -> tuple[Settings, Prepared, Vocabulary]:
    """Resolve the configuration and prepare the text (from the cache after the first time).

    Args:
        options: preset, dtype, corpus and further settings of the command line.
        budget: settings of the steps or minutes.
    """
    chosen = {"pretrain.preset": options.preset, "pretrain.compute_dtype": options.dtype, "vocabulary.min_count": 1}
    settings = resolve(options=chosen | budget, assignments=options.set or ()).settings
    cache = cache_folder(settings)
    corpus = options.corpus or demo_text(cache)
    prepared = prepare([corpus], None, settings.text, settings.pretrain.valid_fraction, cache)
    vocabulary = Vocabulary.from_counts(
        prepared.words, prepared.counts, settings.vocabulary.size, settings.vocabulary.min_count
    )
    return settings, prepared, vocabulary


def train_peer(
    interpreter: str,
    folder: Path,
    settings: Settings,
    prepared: Prepared,
    vocabulary: Vocabulary,
    out: Path,
    steps: int,
    moments: Sequence[float] = (),
) -> dict[str, Any]:
    """Train with simple_elmo in a process of its own and return its report.

    Args:
        interpreter: Python with simple-elmo and tf-keras.
        folder: for the peer's inputs.
        settings: of the same training.
        prepared, vocabulary: the text.
        out: receives the peer's model.
        steps: at most.
        moments: seconds after the start of the process at which the model is kept too, each in a folder of its number
            within `out`; the last one ends the training.
    """
    vocabulary.save(folder / "vocabulary.txt")
    with (folder / "train.txt").open("w", encoding="utf-8") as file:
        stream = prepared.train
        for start, end in itertools.pairwise(stream.starts):
            file.write(" ".join(prepared.words[token] for token in stream.tokens[start:end]) + "\n")
    (folder / "options.json").write_text(json.dumps(peer_options(settings, len(vocabulary))), encoding="utf-8")
    inputs = [folder / "options.json", folder / "train.txt", folder / "vocabulary.txt"]
    done = subprocess.run(
        [interpreter, *map(str, (PEER, *inputs, out, steps, *moments))],
        env=os.environ | PEER_ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"the peer failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def perplexity_of_peer(out: Path, trainer: Trainer) -> Perplexity:
    """Return the validation perplexity of a model that the peer wrote, by the protocol of a trainer of this toolkit."""
    with h5py.File(out / "softmax.h5") as file:
        softmax = Softmax(file["W"][()], file["b"][()])
    return trainer.begin_with(load_model(out).bilm, softmax)


def peer_options(settings: Settings, vocabulary: int) -> dict[str, Any]:
    """Return bilm-tf's training options for the same architecture, with the recipe that it was published with."""
    model = settings.model
    return {
        "bidirectional": True,
        "char_cnn": {
            "activation": model.activation,
            "embedding": {"dim": model.char_dim},
            "filters": [list(pair) for pair in model.filters],
            "max_characters_per_token": model.max_characters_per_token,
            "n_characters": 261,
            "n_highway": model.n_highway,
        },
        "lstm": {
            "cell_clip": model.cell_clip,
            "dim": model.dim,
            "n_layers": model.n_layers,
            "proj_clip": model.proj_clip,
            "projection_dim": model.projection_dim,
            "use_skip_connections": model.use_skip_connections,
        },
        **PUBLISHED,
        "n_tokens_vocab": vocabulary,
    }
