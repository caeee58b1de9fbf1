"""How vectors began is told wherever they or their model are stored."""

import json
from pathlib import Path

import pytest
from oracle import write_random_model
from typer.testing import CliRunner

from toolkit.bilm.folder import full_card, load_model
from toolkit.bilm.warming import WARM_MARK
from toolkit.cli.main import app
from toolkit.config import Embed
from toolkit.embed.dump import dump
from toolkit.embed.dumpfile import open_embeddings


@pytest.mark.parametrize(("state", "mark"), [("warm", f"warm-{WARM_MARK}"), ("zero", "zero"), ("stateful", "stateful")])
def test_a_dump_says_how_its_sentences_began(tiny_model: Path, tmp_path: Path, state: str, mark: str) -> None:
    (tmp_path / "text.txt").write_text("the bank .\n")
    document = dump(load_model(tiny_model), tmp_path / "text.txt", tmp_path / "a.h5", Embed(state=state))
    with open_embeddings(tmp_path / "a.h5") as made:
        assert made.attributes["state_mark"] == document["state_mark"] == mark


def test_card_and_inspect_have_the_mark_beside_the_fingerprint(tmp_path: Path) -> None:
    folder = write_random_model(tmp_path / "model", seed=1)
    model = load_model(folder)
    card = full_card(model.bilm, {"made_by": "someone"})
    assert (card["fingerprint"], card["warm_state"], card["made_by"]) == (model.fingerprint, WARM_MARK, "someone")
    found = json.loads(CliRunner().invoke(app, ["inspect", str(folder), "--json"]).stdout)
    assert (found["fingerprint"], found["warm_state"]) == (model.fingerprint, WARM_MARK)
