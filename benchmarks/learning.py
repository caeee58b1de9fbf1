"""Time to quality: perplexity by training time, this toolkit next to simple_elmo's trainer, as JSON.

    python benchmarks/learning.py --corpus TEXT --peer PYTHON [--preset small] [--minutes 20] [--set KEY=VALUE]

Both train the same architecture on the same text in processes of their own, in turn: the peer once, with the recipe
that it was published with, keeping its model at some moments; this toolkit with its defaults, once for each budget of
time, since its learning rate falls to zero at the end of a budget. Times count from the start of a process, with
imports and compiling; validation and writing do not count. All perplexities are those of the full softmax on the same
held-out text, computed by this toolkit. `ratio` is the peer's time divided by the shortest budget in which this toolkit
reaches the peer's final perplexity. PYTHON is an interpreter with simple-elmo and tf-keras.
"""

import time

STARTED = time.perf_counter()

import argparse  # noqa: E402  the imports belong to what a user waits for
import json  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

from training import perplexity_of_peer, setting, train_peer  # noqa: E402

from toolkit.pretrain.trainer import Trainer  # noqa: E402
from toolkit.runs.writer import RunWriter  # noqa: E402

SHARES = (1 / 30, 1 / 15, 1 / 4, 1)  # of the minutes: budgets of this toolkit
MOMENTS = (0.1, 0.25, 0.5, 0.75, 1.0)  # of the minutes: models of the peer
NEVER = 1e9  # minutes between validations, steps of the peer


def measure_ours(options: argparse.Namespace) -> dict[str, Any]:
    """Train within a budget that began with this process, and validate once at its end."""
    quiet = {"pretrain.validate_minutes": NEVER, "pretrain.checkpoint_minutes": NEVER}
    settings, prepared, vocabulary = setting(options, quiet | {"pretrain.minutes": options.minutes})
    trainer = Trainer(prepared, vocabulary, settings)
    trainer.standing.seconds = time.perf_counter() - STARTED
    trainer.standing.begin_at(0)
    with (
        tempfile.TemporaryDirectory() as folder,
        RunWriter.start(Path(folder), "pretrain", "learning", settings, settings.pretrain.seed) as run,
    ):
        document = trainer.run(run)
    return {
        "seconds": trainer.standing.seconds,
        "tokens": document["tokens"],
        "steps": document["steps"],
        "dtype": document["compute_dtype"],
        "perplexity": document["last_validation_perplexity"],
        "unigram_perplexity": document["unigram_perplexity"],
    }


def measure_peer(options: argparse.Namespace) -> dict[str, Any]:
    """Train with simple_elmo, then read its models with this toolkit."""
    settings, prepared, vocabulary = setting(options, {})
    seconds = [60 * options.minutes * share for share in MOMENTS]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (out := folder / "model").mkdir()
        report = train_peer(options.peer, folder, settings, prepared, vocabulary, out, int(NEVER), seconds)
        trainer = Trainer(prepared, vocabulary, settings)
        return {
            "curve": [
                moment | {"perplexity": perplexity_of_peer(out / str(number), trainer).document()}
                for number, moment in enumerate(report["moments"])
            ]
        }


def run_side(side: str, minutes: float) -> dict[str, Any]:
    """Start this script again for one side and return the JSON that it prints."""
    print(f"{side}: {minutes:.3g} minutes", file=sys.stderr)
    command = [sys.executable, *sys.argv, "--side", side, "--minutes", str(minutes)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--peer", help="interpreter with simple-elmo and tf-keras", required=True)
    parser.add_argument("--preset", default="small")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--minutes", type=float, default=20.0, help="of the peer's training")
    parser.add_argument("--set", action="append", help="a further setting, as model.dim=512")
    # What the processes of the two sides are started with.
    parser.add_argument("--side", choices=["ours", "peer"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        print(json.dumps(measure_ours(options) if options.side == "ours" else measure_peer(options)))
        return
    peer = run_side("peer", options.minutes)["curve"]
    ours = [run_side("ours", options.minutes * share) for share in SHARES]
    goal = peer[-1]["perplexity"]["mean"]
    reached = [one["seconds"] for one in ours if one["perplexity"]["mean"] <= goal]
    ratio = peer[-1]["seconds"] / min(reached) if reached else None
    print(json.dumps({"preset": options.preset, "peer": peer, "ours": ours, "goal": goal, "ratio": ratio}, indent=1))


if __name__ == "__main__":
    main()
