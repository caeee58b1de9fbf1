"""Training speed of the biLM beside what this machine's matrix products allow, as JSON.

    python benchmarks/pretrain.py --corpus TEXT [--preset small] [--dtype bfloat16] [--steps 20]

Without --corpus it reads the demonstration's text (`toolkit data get demo-text`).
"""

import argparse
import json
import statistics
import time
from pathlib import Path

from tasks.demo_text import demo_text
from toolkit.bilm.backend import tf
from toolkit.config import cache_folder, resolve
from toolkit.memory import peak_memory_mb
from toolkit.pretrain.trainer import Trainer
from toolkit.text.prepare import prepare
from toolkit.text.vocab import Vocabulary

WARM_UP = 3  # steps that trace and compile


def product_ceiling(dtype: tf.DType, size: int = 2048, repeats: int = 5) -> float:
    """Return the best rate of a square matrix product through TensorFlow, in GFLOP/s."""
    a = tf.cast(tf.random.normal((size, size)), dtype)
    product = tf.function(lambda: tf.reduce_sum(tf.matmul(a, a)))
    product().numpy()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        product().numpy()
        seconds.append(time.perf_counter() - start)
    return 2 * size**3 / min(seconds) / 1e9


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--preset", default="small")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    chosen = {"pretrain.preset": options.preset, "pretrain.compute_dtype": options.dtype}
    settings = resolve(options=chosen).settings
    cache = cache_folder(settings)
    corpus = options.corpus or demo_text(cache)
    prepared = prepare([corpus], None, settings.text, settings.pretrain.valid_fraction, cache)
    vocabulary = Vocabulary.from_counts(
        prepared.words, prepared.counts, settings.vocabulary.size, settings.vocabulary.min_count
    )
    trainer = Trainer(prepared, vocabulary, settings)
    seconds = []
    for step in range(WARM_UP + options.steps):
        batch = trainer.batches[step]  # made beside the step in training, so left out here
        start = time.perf_counter()
        trainer.graph.train(batch)
        seconds.append(time.perf_counter() - start)
    steady = seconds[WARM_UP:]
    report = {
        "preset": options.preset,
        "dtype": trainer.graph.dtype.name,
        "vocabulary": len(vocabulary),
        "tokens_per_step": trainer.tokens_per_step,
        "steps": len(steady),
        "step_seconds": {"min": min(steady), "median": statistics.median(steady), "max": max(steady)},
        "tokens_per_second": trainer.tokens_per_step / statistics.median(steady),
        "product_ceiling_gflops": product_ceiling(trainer.graph.dtype),
        "peak_memory_mb": peak_memory_mb(),
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
