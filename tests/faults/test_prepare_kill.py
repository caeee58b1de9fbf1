"""kill -9 while a corpus is tokenised: what is left behind is gone after the next one."""

import subprocess
import sys
import time

from toolkit.config import Text
from toolkit.text.prepare import prepare

CODE = """
import sys
from pathlib import Path
from toolkit.config import Text
from toolkit.text.prepare import prepare

if __name__ == "__main__":
    prepare([sys.argv[1]], None, Text(input="raw", processes=1), 0.01, Path(sys.argv[2]))
"""


def test_a_corpus_killed_half_way_is_swept_up_by_the_next(tmp_path) -> None:
    (tmp_path / "large.txt").write_text("The cats often eat the fish. They like it.\n" * 100_000, encoding="utf-8")
    (tmp_path / "small.txt").write_text("".join(f"The {n} cats eat.\n" for n in range(200)), encoding="utf-8")
    corpora = tmp_path / "cache" / "corpora"
    process = subprocess.Popen([sys.executable, "-c", CODE, str(tmp_path / "large.txt"), str(tmp_path / "cache")])
    try:
        while not list(corpora.glob(".*/train.tokens.bin")):
            assert process.poll() is None
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    assert [path.name[0] for path in corpora.iterdir()] == ["."]
    prepared = prepare([tmp_path / "small.txt"], None, Text(), 0.05, tmp_path / "cache")
    assert list(corpora.iterdir()) == [prepared.folder]
