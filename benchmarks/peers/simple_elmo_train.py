"""Train with simple_elmo's own trainer and print when its steps ended, as JSON; `benchmarks/training.py` starts it.

    TF_USE_LEGACY_KERAS=1 PYTHON simple_elmo_train.py OPTIONS.json TEXT VOCABULARY OUT STEPS [SECONDS ...]

OUT receives the peer's checkpoint, its weights as the peer writes them (`weights.hdf5`) and its softmax (`softmax.h5`).
With SECONDS after the start of the process, OUT/0, OUT/1, … receive the same at those moments, and the last one ends
the training; the time of writing them does not count.
"""

import time

STARTED = time.perf_counter()

import contextlib  # noqa: E402  the imports belong to what a user waits for
import itertools  # noqa: E402
import json  # noqa: E402
import shutil  # noqa: E402
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

    def keep_at(self, moments: list[float], out: Path) -> None:
        """Keep checkpoints at moments and end the batches at the last one."""
        self.asked: list[float] = []
        self.reached: list[dict[str, float]] = []
        self._moments, self._out, self._kept_seconds = moments, out, 0.0

    def iter_batches(self, batch_size: int, num_steps: int) -> Iterator[dict[str, Any]]:
        """Yield the peer's batches."""
        for step, batch in enumerate(super().iter_batches(batch_size, num_steps)):
            now = time.perf_counter() - STARTED - self._kept_seconds
            self.asked.append(now)
            while self._moments and now >= self._moments[len(self.reached)]:
                self._keep(now, step)
                if len(self.reached) == len(self._moments):
                    return
            yield batch

    def _keep(self, seconds: float, step: int) -> None:
        start = time.perf_counter()
        folder = self._out / str(len(self.reached))
        folder.mkdir()
        tf.compat.v1.train.Saver().save(tf.compat.v1.get_default_session(), str(folder / "model.ckpt"))
        self.reached.append({"seconds": seconds, "steps": step})
        self._kept_seconds += time.perf_counter() - start


def write_model(folder: Path) -> None:
    """Write the weights and the softmax of a folder's checkpoint as HDF5."""
    tf.compat.v1.reset_default_graph()
    dump_weights(str(folder), str(folder / "weights.hdf5"))
    reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(str(folder)))
    with h5py.File(folder / "softmax.h5", "w") as file:
        file["W"], file["b"] = reader.get_tensor("lm/softmax/W"), reader.get_tensor("lm/softmax/b")


def main() -> None:
    """Train STEPS steps and report."""
    options_path, text, vocabulary, out, steps, *moments = sys.argv[1:]
    options = json.loads(Path(options_path).read_text(encoding="utf-8"))
    options["n_epochs"] = 1
    options["n_train_tokens"] = int(steps) * options["batch_size"] * options["unroll_steps"]
    data = TimedDataset(
        text, load_vocab(vocabulary, options["char_cnn"]["max_characters_per_token"]), shuffle_on_load=True
    )
    data.keep_at([float(moment) for moment in moments], Path(out))
    with contextlib.redirect_stdout(sys.stderr):
        train(options, data, 1, out, out)
        whole = time.perf_counter() - STARTED  # with the peer's saving of its checkpoint
        folders = [Path(out) / str(number) for number in range(len(data.reached))]
        for folder in folders:
            shutil.copy(Path(out) / "options.json", folder)
        for folder in folders or [Path(out)]:
            write_model(folder)
    step_seconds = [after - before for before, after in itertools.pairwise(data.asked)]
    print(json.dumps({"whole_seconds": whole, "step_seconds": step_seconds, "moments": data.reached}))


if __name__ == "__main__":
    main()
