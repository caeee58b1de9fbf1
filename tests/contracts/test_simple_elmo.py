"""A real client, simple_elmo in an environment of its own, loads what `toolkit export` wrote and gives our vectors.

TOOLKIT_PEER_PYTHON names an interpreter that has simple-elmo and tf-keras; without it the test installs them by pip.
"""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import pytest
from oracle import write_random_model

from toolkit.bilm.export import export
from toolkit.bilm.folder import load_model
from toolkit.embed.encoder import Encoder

CLIENT = Path(__file__).resolve().parents[1] / "peers" / "simple_elmo_client.py"
REQUIREMENTS = ("simple-elmo==0.9.2", "tf-keras")
TOLERANCE = 1e-5
SENTENCES = [
    text.split()
    for text in (
        "The bank of the river was flooded .",
        "Bank",
        "Zürich 北京 ñandú 🙂 / . \" '",
        f"a word longer than any model reads : {'x' * 300}",
    )
]
# Shapes as the published models have them, and words shorter than theirs, which AllenNLP alone refuses.
MODELS = {
    "published": {"max_characters_per_token": 50, "words": ("the", "of", "北京")},
    "no list of words": {"max_characters_per_token": 50, "n_highway": 2, "filters": [[1, 4], [3, 8], [7, 12]]},
    "short words": {"max_characters_per_token": 12, "use_skip_connections": False, "activation": "tanh"},
}


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return an interpreter that has simple_elmo."""
    if named := os.environ.get("TOOLKIT_PEER_PYTHON"):
        return named
    folder = tmp_path_factory.mktemp("peer")
    venv.create(folder, with_pip=True)
    python = str(folder / ("Scripts" if sys.platform == "win32" else "bin") / "python")
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *REQUIREMENTS]
    result = subprocess.run(command, capture_output=True, text=True, timeout=1500)
    if result.returncode:
        pytest.skip(f"pip cannot install {' '.join(REQUIREMENTS)}: {result.stderr.strip().splitlines()[-1:]}")
    return python


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_simple_elmo_gives_our_vectors_from_folder_and_zip(peer: str, tmp_path: Path, record_property) -> None:
    models = [load_model(write_random_model(tmp_path / name, 9, **changes)) for name, changes in MODELS.items()]
    exports = []
    for number, model in enumerate(models):
        refused = export(model, tmp_path / f"{number}")["refused_by"]
        assert "simple_elmo" not in [refusal["reader"] for refusal in refused]
        export(model, tmp_path / f"{number}.zip")
        exports += [(model, tmp_path / f"{number}"), (model, tmp_path / f"{number}.zip")]
    result = subprocess.run(
        [peer, str(CLIENT), str(tmp_path / "out.npz"), *(str(path) for _, path in exports)],
        input=json.dumps(SENTENCES),
        env=os.environ | {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
    worst = 0.0
    with np.load(tmp_path / "out.npz", allow_pickle=False) as found:
        for number, (model, path) in enumerate(exports):
            for s, layers in enumerate(Encoder(model, "zero").encode(SENTENCES)):
                theirs = found[f"{number}-{s}"]
                assert theirs.shape == layers.shape, path
                worst = max(worst, float(np.abs(theirs - layers).max()))
    record_property("largest_difference", worst)
    assert 0.0 < worst < TOLERANCE
