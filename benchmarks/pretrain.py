"""Training speed of the biLM: this toolkit beside simple_elmo's trainer, on one text with one configuration, as JSON.

    python benchmarks/pretrain.py --corpus TEXT --peer PYTHON [--preset small] [--dtype bfloat16] [--steps 60] \
        [--repeats 3]

PYTHON is an interpreter with simple-elmo and tf-keras installed (in a virtual environment of its own: simple_elmo needs
other settings of TensorFlow). Without --peer only this toolkit is measured; without --corpus it reads the
demonstration's text. Both sides train with the published recipe (Adagrad), run in processes of their own and take
turns. `steady` leaves out the first steps, in which graphs are built and compiled; `whole` counts from the start of the
process to the last step. The perplexities are those of the full softmax on the same held-out text after the same number
of tokens, both computed by this toolkit.
"""

import time

STARTED = time.perf_counter()

import argparse  # noqa: E402  the imports belong to what a user waits for
import itertools  # noqa: E402
import json  # noqa: E402
import statistics  # noqa: E402
import tempfile  # noqa: E402
from concurrent.futures import ThreadPoolExecutor  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

from measure import product_ceiling, take_turns  # noqa: E402
from training import AS_PUBLISHED, perplexity_of_peer, setting, train_peer  # noqa: E402

from toolkit.memory import peak_memory_mb  # noqa: E402
from toolkit.pretrain.trainer import Trainer  # noqa: E402

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


def measure_ours(options: argparse.Namespace) -> dict[str, Any]:
    """Train some steps in this process, batches made beside them as in training."""
    settings, prepared, vocabulary = setting(options, AS_PUBLISHED | {"pretrain.steps": options.steps})
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
    settings, prepared, vocabulary = setting(options, AS_PUBLISHED | {"pretrain.steps": options.steps})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (out := folder / "model").mkdir()
        report = train_peer(options.peer, folder, settings, prepared, vocabulary, out, options.steps)
        trainer = Trainer(prepared, vocabulary, settings)
        report["perplexity"] = perplexity_of_peer(out, trainer).document()
    return report


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
    parser.add_argument("--set", action="append", help="a further setting of both sides, as model.dim=512")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=3)
    # What the processes of the two sides are started with.
    parser.add_argument("--side", choices=["ours", "peer"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        print(json.dumps(measure_ours(options) if options.side == "ours" else measure_peer(options)))
        return
    settings, prepared, vocabulary = setting(options, AS_PUBLISHED | {"pretrain.steps": options.steps})
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
