"""A dump on a real Ray with two workers, one of which is killed: the same vectors, and finished parts are kept."""

import os
import random
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from oracle import write_random_model

from toolkit.bilm.folder import load_model
from toolkit.config import Embed
from toolkit.embed.dump import dump
from toolkit.embed.dumpfile import open_embeddings
from toolkit.embed.ray_dump import dump_on_ray
from toolkit.errors import UsageError

WORDS = [f"w{number}" for number in range(500)]
PART_TOKENS = 6000
SETTINGS = Embed(batch_tokens=512)


class Killer(threading.Thread):
    """Kills the process that writes a part, once."""

    def __init__(self, part: Path) -> None:
        super().__init__(daemon=True)
        self._part, self.killed = Path(f"{part}.partial"), 0

    def run(self) -> None:
        while not self.killed:
            time.sleep(0.005)
            try:
                inode = self._part.stat().st_ino
            except FileNotFoundError:
                continue
            for line in Path("/proc/locks").read_text().splitlines():
                _, kind, _, _, process, place, *_ = line.split()[:8]
                if kind == "FLOCK" and place.split(":")[-1] == str(inode) and not self.killed:
                    os.kill(int(process), signal.SIGKILL)
                    self.killed = int(process)


def vectors(path: Path) -> list[np.ndarray]:
    with open_embeddings(path) as found:
        return list(found)


def largest_difference(a: list[np.ndarray], b: list[np.ndarray]) -> float:
    assert [x.shape for x in a] == [y.shape for y in b]
    return max(np.abs(x - y).max() for x, y in zip(a, b, strict=True) if x.size)


@pytest.fixture
def text(tmp_path) -> Path:
    chance = random.Random(3)
    lines = [" ".join(chance.choices(WORDS, k=chance.randrange(30))) for _ in range(2500)]
    (tmp_path / "text.txt").write_text("\n".join([*lines, 'a/b . "ç" 😀', "", ""]) + "\n", encoding="utf-8")
    return tmp_path / "text.txt"


@pytest.mark.slow
def test_a_dump_on_two_workers_one_of_which_is_killed_equals_the_plain_one(tmp_path, text) -> None:
    ray = pytest.importorskip("ray")
    if not Path("/proc/locks").exists():
        pytest.skip("who writes a part is found by /proc/locks")
    model = load_model(write_random_model(tmp_path / "model", seed=7))
    dump(model, text, tmp_path / "plain.h5", SETTINGS)
    expected, out = vectors(tmp_path / "plain.h5"), tmp_path / "ray.h5"
    killer = Killer(tmp_path / "ray.h5.parts" / "000003.h5")
    killer.start()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        document = dump_on_ray("local", model, text, out, SETTINGS, part_tokens=PART_TOKENS)
        assert killer.killed
        assert (document["sentences"], document["kept_parts"]) == (2503, 0) and document["parts"] > 5
        assert sorted(e.suffix for e in (tmp_path / "ray.h5.parts").iterdir()) == [".h5"] * document["parts"] + [
            ".json"
        ]
        assert largest_difference(vectors(out), expected) <= 1e-6
        # Interrupted, with one part lost: the others are kept, and the same comes out to the bit.
        first = vectors(out)
        out.unlink()
        (tmp_path / "ray.h5.parts" / "000002.h5").unlink()
        with pytest.raises(UsageError, match=r"holds parts of an unfinished dump: go on with --resume"):
            dump_on_ray("local", model, text, out, SETTINGS, part_tokens=PART_TOKENS)
        again = dump_on_ray("local", model, text, out, SETTINGS, part_tokens=PART_TOKENS, resume=True)
        assert again["kept_parts"] == document["parts"] - 1
        assert largest_difference(vectors(out), first) == 0
    finally:
        ray.shutdown()
    # The two may be moved together.
    (tmp_path / "elsewhere").mkdir()
    for name in ("ray.h5", "ray.h5.parts"):
        (tmp_path / name).rename(tmp_path / "elsewhere" / name)
    assert largest_difference(vectors(tmp_path / "elsewhere" / "ray.h5"), first) == 0


def test_a_stream_of_states_is_not_parted(tmp_path, text, tiny_model) -> None:
    with pytest.raises(UsageError, match="stateful is one stream"):
        dump_on_ray("local", load_model(tiny_model), text, tmp_path / "out.h5", Embed(state="stateful"))
