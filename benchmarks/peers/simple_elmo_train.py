"""Train with simple_elmo's own trainer and print when its steps ended, as JSON; `benchmarks/pretrain.py` starts it.

    TF_USE_LEGACY_KERAS=1 PYTHON simple_elmo_train.py OPTIONS.json TEXT VOCABULARY OUT STEPS

OUT receives the peer's checkpoint, its weights as the peer writes them (`weights.hdf5`) and its softmax (`softmax.h5`).
"""

import time

STARTED = time.perf_counter()

import contextlib  # noqa: E402  the imports belong to what a user waits for
import itertools  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import h5py  # noqa: E402
import tensorflow as tf  # noqa: E402

tf.compat.v1.disable_v2_behavior()

from simple_elmo.data import BidirectionalLMDataset  # noqa: E402
from simple_elmo.training import dump_weights, load_vocab, train  # noqa: E402


class TimedDataset(BidirectionalLMDataset):
    """The peer's data set, noting each time its trainer comes for a batch: the step before has then ended."""

    def iter_batches(self, batch_size: int, num_steps: int) -> Iterator[dict[str, Any]]:
        """Yield the peer's batches."""
        self.asked: list[float] = []
        for batch in super().iter_batches(batch_size, num_steps):
            self.asked.append(time.perf_counter())
            yield batch


def main() -> None:
    """Train STEPS steps and report."""
    options_path, text, vocabulary, out, steps = sys.argv[1:]
    options = json.loads(Path(options_path).read_text(encoding="utf-8"))
    options["n_epochs"] = 1
    options["n_train_tokens"] = int(steps) * options["batch_size"] * options["unroll_steps"]
    data = TimedDataset(
        text, load_vocab(vocabulary, options["char_cnn"]["max_characters_per_token"]), shuffle_on_load=True
    )
    with contextlib.redirect_stdout(sys.stderr):
        train(options, data, 1, out, out)
        whole = time.perf_counter() - STARTED  # with the peer's saving of its checkpoint
        tf.compat.v1.reset_default_graph()
        dump_weights(out, f"{out}/weights.hdf5")
    reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(out))
    with h5py.File(f"{out}/softmax.h5", "w") as file:
        file["W"], file["b"] = reader.get_tensor("lm/softmax/W"), reader.get_tensor("lm/softmax/b")
    step_seconds = [after - before for before, after in itertools.pairwise(data.asked)]
    print(json.dumps({"whole_seconds": whole, "step_seconds": step_seconds}))


if __name__ == "__main__":
    main()
