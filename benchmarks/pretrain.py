"""Training speed of the biLM: this toolkit beside simple_elmo's trainer, on one text with one configuration, as JSON.

    python benchmarks/pretrain.py --corpus TEXT --peer PYTHON [--preset small] [--dtype bfloat16] [--steps 60] \
        [--repeats 3]

PYTHON is an interpreter with simple-elmo and tf-keras installed (in a virtual environment of its own: simple_elmo needs
other settings of TensorFlow). Without --peer only this toolkit is measured; without --corpus it reads the
demonstration's text. Both sides run in processes of their own and take turns. `steady` leaves out the first steps, in
which graphs are built and compiled; `whole` counts from the start of the process to the last step. The perplexities
are those of the full softmax on the same held-out text after the same number of tokens, both computed by this toolkit.
"""

import time

STARTED = time.perf_counter()

import argparse  # noqa: E402  the imports belong to what a user waits for
import itertools  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
from concurrent.futures import ThreadPoolExecutor  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import h5py  # noqa: E402
from measure import PEER_ENVIRONMENT, product_ceiling, take_turns  # noqa: E402

from tasks.demo_text import demo_text  # noqa: E402
from toolkit.bilm.folder import Softmax, load_model  # noqa: E402
from toolkit.config import Settings, cache_folder, resolve  # noqa: E402
from toolkit.memory import peak_memory_mb  # noqa: E402
from toolkit.pretrain.trainer import Trainer  # noqa: E402
from toolkit.text.prepare import Prepared, prepare  # noqa: E402
from toolkit.text.vocab import Vocabulary  # noqa: E402

PEER = Path(__file__).parent / "peers" / "simple_elmo_train.py"
WARM_UP = 1 / 3  # share of the steps that `steady` leaves out


def step_gflop(trainer: Trainer, words: int) -> float:
    """Return the arithmetic that a training step of a character model cannot do without, in GFLOP.

    Args:
        trainer: gives the shape.
        words: rows of the token layer in a step: distinct words, and what fills their groups up.
    """
    spec, settings = trainer.graph.bilm.spec, trainer.settings
    d, p, n = spec.dim, spec.projection_dim, spec.n_filters
    positions = 8  # characters of a distinct word with its marks, about
    convolutions = positions * sum(width * spec.char_dim * number for width, number in spec.filters)
    token_layer = words * (convolutions + spec.n_highway * 2 * n * n + n * p)
    lstm = spec.directions * trainer.tokens_per_step * spec.n_layers * (2 * p * 4 * d + d * p)
    softmax = spec.directions * trainer.tokens_per_step * settings.negatives * p
    return 2 * 3 * (token_layer + lstm + softmax) / 1e9  # a product forward and two backward, two operations each


def setting(options: argparse.Namespace) -> tuple[Settings, Prepared, Vocabulary]:
    """Resolve the configuration and prepare the text (from the cache after the first time)."""
    chosen = {"pretrain.preset": options.preset, "pretrain.compute_dtype": options.dtype, "vocabulary.min_count": 1}
    settings = resolve(options=chosen | {"pretrain.steps": options.steps}).settings
    cache = cache_folder(settings)
    corpus = options.corpus or demo_text(cache)
    prepared = prepare([corpus], None, settings.text, settings.pretrain.valid_fraction, cache)
    vocabulary = Vocabulary.from_counts(
        prepared.words, prepared.counts, settings.vocabulary.size, settings.vocabulary.min_count
    )
    return settings, prepared, vocabulary


def measure_ours(options: argparse.Namespace) -> dict[str, Any]:
    """Train some steps in this process, batches made beside them as in training."""
    settings, prepared, vocabulary = setting(options)
    trainer = Trainer(prepared, vocabulary, settings)
    ended, words = [], []
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(trainer.batches.__getitem__, 0)
        for step in range(options.steps):
            batch = coming.result()
            coming = pool.submit(trainer.batches.__getitem__, step + 1)
            trainer.graph.train(batch)
            ended.append(time.perf_counter())
            words.append(sum(len(group) for group in batch.groups))
    peak = peak_memory_mb()
    ceiling = product_ceiling(trainer.graph.dtype)
    step_seconds = [after - before for before, after in itertools.pairwise(ended)]
    seconds = statistics.median(steady(step_seconds))
    gflop = step_gflop(trainer, round(statistics.mean(words)))
    return {
        "dtype": trainer.graph.dtype.name,
        "whole_seconds": ended[-1] - STARTED,
        "step_seconds": step_seconds,
        "peak_memory_mb": peak,
        "product_ceiling_gflops": ceiling,
        "share_of_ceiling": gflop / seconds / ceiling,
        "perplexity": trainer.validation.run().document(),
    }


def steady(step_seconds: list[float]) -> list[float]:
    """Return the steps behind the warm-up."""
    return step_seconds[int(len(step_seconds) * WARM_UP) :]


def measure_peer(options: argparse.Namespace) -> dict[str, Any]:
    """Train as many steps with simple_elmo, then read its model with this toolkit."""
    settings, prepared, vocabulary = setting(options)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vocabulary.save(folder / "vocabulary.txt")
        with (folder / "train.txt").open("w", encoding="utf-8") as file:
            stream = prepared.train
            for start, end in itertools.pairwise(stream.starts):
                file.write(" ".join(prepared.words[token] for token in stream.tokens[start:end]) + "\n")
        (folder / "options.json").write_text(json.dumps(peer_options(settings, len(vocabulary))), encoding="utf-8")
        (out := folder / "model").mkdir()
        command = [options.peer, str(PEER), folder / "options.json", folder / "train.txt", folder / "vocabulary.txt"]
        done = subprocess.run(
            [*map(str, command), str(out), str(options.steps)],
            env=os.environ | PEER_ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"the peer failed:\n{done.stderr[-2000:]}")
        report = json.loads(done.stdout.splitlines()[-1])
        model = load_model(out)
        with h5py.File(out / "softmax.h5") as file:
            softmax = Softmax(file["W"][()], file["b"][()])
        trainer = Trainer(prepared, vocabulary, settings)
        report["perplexity"] = trainer.begin_with(model.bilm, softmax).document()
    return report


def peer_options(settings: Settings, vocabulary: int) -> dict[str, Any]:
    """Return bilm-tf's training options for the same configuration."""
    model, training = settings.model, settings.pretrain
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
        "dropout": training.dropout,
        "all_clip_norm_val": training.clip_norm,
        "learning_rate": training.learning_rate,
        "batch_size": training.batch_size,
        "unroll_steps": training.unroll_steps,
        "n_negative_samples_batch": training.negatives,
        "n_tokens_vocab": vocabulary,
    }


def rates(report: dict[str, Any], tokens_per_step: int) -> dict[str, Any]:
    """Turn a side's times into tokens a second."""
    step_seconds = report.pop("step_seconds")
    median = statistics.median(steady(step_seconds))
    return report | {
        "steady_tokens_per_second": tokens_per_step / median,
        "whole_tokens_per_second": tokens_per_step * (len(step_seconds) + 1) / report["whole_seconds"],
        "step_seconds": {"min": min(step_seconds), "median": median, "last": step_seconds[-1]},
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--peer", help="interpreter with simple-elmo and tf-keras")
    parser.add_argument("--preset", default="small")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=3)
    # What the processes of the two sides are started with.
    parser.add_argument("--side", choices=["ours", "peer"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        print(json.dumps(measure_ours(options) if options.side == "ours" else measure_peer(options)))
        return
    settings, prepared, vocabulary = setting(options)
    tokens_per_step = settings.pretrain.batch_size * settings.pretrain.unroll_steps
    sides = take_turns(["ours", "peer"] if options.peer else ["ours"], options.repeats)
    for reports in sides.values():
        reports[:] = [rates(report, tokens_per_step) for report in reports]
    result: dict[str, Any] = {
        "preset": options.preset,
        "vocabulary": len(vocabulary),
        "train_tokens": prepared.train.n_tokens,
        "steps": options.steps,
        "tokens": options.steps * tokens_per_step,
        **sides,
    }
    if options.peer:
        pairs = list(zip(sides["ours"], sides["peer"], strict=True))
        result["ratio"] = {
            kind: [ours[f"{kind}_tokens_per_second"] / peer[f"{kind}_tokens_per_second"] for ours, peer in pairs]
            for kind in ("steady", "whole")
        }
        result["perplexity_ratio"] = [ours["perplexity"]["mean"] / peer["perplexity"]["mean"] for ours, peer in pairs]
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
