"""What the benchmarks share: the machine's ceiling, and sides that take turns in processes of their own."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from toolkit.bilm.backend import tf

PEER_ENVIRONMENT = {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}


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


def take_turns(sides: Sequence[str], repeats: int) -> dict[str, list[dict[str, Any]]]:
    """Start this script anew for each side and repeat, with `--side SIDE`; return the JSON that each prints last."""
    reports: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    for repeat in range(repeats):
        for side in sides:
            print(f"repeat {repeat + 1} of {repeats}: {side}", file=sys.stderr)
            command = [sys.executable, *sys.argv, "--side", side]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            reports[side].append(json.loads(done.stdout.splitlines()[-1]))
    return reports
