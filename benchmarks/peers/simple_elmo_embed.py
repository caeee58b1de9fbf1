"""Encode sentences with simple_elmo and print the times as JSON; `benchmarks/embed.py` starts it.

    TF_USE_LEGACY_KERAS=1 PYTHON simple_elmo_embed.py MODEL SHORT LONG   < sentences.json

The first SHORT and the first LONG sentences are encoded, all layers, each by a model loaded afresh.
"""

import time

STARTED = time.perf_counter()

import json  # noqa: E402  the imports belong to what a user waits for
import resource  # noqa: E402
import sys  # noqa: E402

import tensorflow as tf  # noqa: E402
from simple_elmo import ElmoModel  # noqa: E402

folder, *numbers = sys.argv[1:]
sentences = json.load(sys.stdin)
runs = []
for number in map(int, numbers):
    tf.compat.v1.reset_default_graph()
    started = time.perf_counter() if runs else STARTED
    model = ElmoModel()
    model.load(folder, max_batch_size=32)
    model.get_elmo_vectors(sentences[:number], layers="all")
    runs.append({"tokens": sum(map(len, sentences[:number])), "seconds": time.perf_counter() - started})
print(json.dumps({"runs": runs, "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}))
