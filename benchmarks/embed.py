"""Speed of encoding: this toolkit beside simple_elmo, random weights in the published layout, as JSON.

    python benchmarks/embed.py --text FILE [--text FILE …] --peer PYTHON [--preset small] [--compute bfloat16] \
        [--sentences 6000] [--peer-sentences 600] [--calls 1000] [--repeats 3]

PYTHON is an interpreter with simple-elmo and tf-keras installed. Without --peer only this toolkit is measured; without
--text it reads the demonstration's text. The files hold a tokenised sentence a line; their sentences are mixed by a
fixed seed. All layers are computed, a tenth of the sentences and all of them: `steady` is the rate of the difference,
so that loading, building and compiling are left out; `whole` is that of the longer run with everything. Both sides run
in processes of their own and take turns; the peer reads the first of the same sentences.

`small_calls` of this toolkit: calls of one sentence each, every second one with a new word, and `first_seconds`, what a
new process needs from its start to the first vectors; `--calls 0` leaves them out.
"""

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measure import PEER_ENVIRONMENT, product_ceiling, take_turns

import toolkit
from tasks.demo_text import demo_text
from toolkit.bilm.backend import tf
from toolkit.bilm.export import export
from toolkit.bilm.folder import Model, load_model
from toolkit.bilm.model import BiLM
from toolkit.bilm.spec import BiLMSpec
from toolkit.config import cache_folder, resolve
from toolkit.embed.encoder import Encoder
from toolkit.memory import peak_memory_mb

PEER = Path(__file__).parent / "peers" / "simple_elmo_embed.py"
SHARE = 0.1  # of the sentences, in the shorter run
LONGEST = 100  # tokens: both sides read sentences, not articles
FIRST = """
import sys
import toolkit
toolkit.load_bilm(sys.argv[1]).embed([["The", "bank", "was", "closed", "."]])
"""


def sentences(options: argparse.Namespace) -> list[list[str]]:
    """Read, mix and return the sentences."""
    paths = options.text or [demo_text(cache_folder(resolve().settings))]
    found = [line.split() for path in paths for line in path.read_text(encoding="utf-8").split("\n")]
    found = sorted({tuple(tokens[:LONGEST]) for tokens in found if tokens})
    random.Random(1).shuffle(found)
    return [list(tokens) for tokens in found[: options.sentences]]


def gflop(model: Model, tokens: int, words: int) -> float:
    """Return the arithmetic that encoding cannot do without, in GFLOP."""
    spec = model.spec
    d, p, n = spec.dim, spec.projection_dim, spec.n_filters
    positions = 8  # characters of a distinct word with its marks, about
    convolutions = positions * sum(width * spec.char_dim * number for width, number in spec.filters)
    lstm = spec.directions * spec.n_layers * (2 * p * 4 * d + d * p)
    return 2 * (words * (convolutions + spec.n_highway * 2 * n * n + n * p) + tokens * lstm) / 1e9


def measure_ours(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Encode with this toolkit."""
    text = sentences(options)
    runs = []
    for number in (round(SHARE * len(text)), len(text)):
        started = time.perf_counter()
        model = load_model(folder)
        for _ in Encoder(model, compute=options.compute).encode(text[:number]):
            pass
        runs.append({"tokens": sum(map(len, text[:number])), "seconds": time.perf_counter() - started})
    peak = peak_memory_mb()
    ceiling = product_ceiling(tf.as_dtype(options.compute))
    behind = text[round(SHARE * len(text)) :]  # what the longer run reads more
    words = len({word for line in text for word in line}) - len(
        {word for line in text[: -len(behind)] for word in line}
    )
    work = gflop(model, sum(len(line) + 2 for line in behind), words)
    return {
        "runs": runs,
        "peak_memory_mb": peak,
        "product_ceiling_gflops": ceiling,
        "share_of_ceiling": work / (runs[1]["seconds"] - runs[0]["seconds"]) / ceiling,
        "small_calls": small_calls(folder, options.calls) if options.calls else None,
    }


def small_calls(folder: Path, calls: int) -> dict[str, Any]:
    """Measure calls of one sentence each, in this process, and the first of a new one."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", FIRST, str(folder)], check=True)
    first = time.perf_counter() - started
    embedder = toolkit.load_bilm(folder)
    line = ["the", "old", "bank", "on", "this", "side", "of", "the", "river", "was", "closed", "in", "winter", "."]
    seconds, resident = [], []
    for call in range(calls):
        started = time.perf_counter()
        embedder.embed([[*line[: 5 + call % 9], str(call) if call % 2 else "."]])
        seconds.append(time.perf_counter() - started)
        resident.append(resident_mb())
    return {
        "first_seconds": first,
        "median_ms": 1e3 * statistics.median(seconds[calls // 2 :: 2]),
        "median_ms_with_a_new_word": 1e3 * statistics.median(seconds[calls // 2 + 1 :: 2]),
        "slowest_of_the_second_half_ms": 1e3 * max(seconds[calls // 2 :]),
        "resident_mb": {f"call {calls // 10}": resident[calls // 10], f"call {calls}": resident[-1]},
    }


def resident_mb() -> float:
    """Return the memory that this process holds now, in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def measure_peer(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Encode with simple_elmo."""
    text = sentences(options)[: options.peer_sentences]
    command = [options.peer, PEER, folder, round(SHARE * len(text)), len(text)]
    done = subprocess.run(
        list(map(str, command)),
        env=os.environ | PEER_ENVIRONMENT,
        input=json.dumps(text),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"the peer failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def rates(report: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the steady and the whole rate, in tokens a second."""
    short, whole = report["runs"]
    yield "steady", (whole["tokens"] - short["tokens"]) / (whole["seconds"] - short["seconds"])
    yield "whole", whole["tokens"] / whole["seconds"]


def random_model(preset: str, folder: Path) -> None:
    """Write a model of random weights in the published layout."""
    spec = BiLMSpec.from_settings(resolve(options={"pretrain.preset": preset}).settings.model, 0)
    export(Model(BiLM(spec, seed=1), None, {}, "", folder), folder)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, action="append")
    parser.add_argument("--peer", help="interpreter with simple-elmo and tf-keras")
    parser.add_argument("--preset", default="small")
    parser.add_argument("--compute", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--sentences", type=int, default=6000)
    parser.add_argument("--peer-sentences", type=int, default=600)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    # What the processes of the two sides are started with.
    parser.add_argument("--side", choices=["ours", "peer"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if options.side:
            random_model(options.preset, Path(name) / "model")
            measure = measure_ours if options.side == "ours" else measure_peer
            print(json.dumps(measure(options, Path(name) / "model")))
            return
    reports = take_turns(["ours", "peer"] if options.peer else ["ours"], options.repeats)
    for side in reports.values():
        for report in side:
            report["tokens_per_second"] = dict(rates(report))
    result: dict[str, Any] = {"preset": options.preset, "compute": options.compute, **reports}
    if options.peer:
        pairs = list(zip(reports["ours"], reports["peer"], strict=True))
        result["ratio"] = {
            kind: [ours["tokens_per_second"][kind] / peer["tokens_per_second"][kind] for ours, peer in pairs]
            for kind in ("steady", "whole")
        }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
