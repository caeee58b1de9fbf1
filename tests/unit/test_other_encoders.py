"""Vectors of another encoder, read from dumps, in the same tables and pictures as a biLM's."""

import json
import shlex
from pathlib import Path

import h5py
import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner, Result

from toolkit.cli.main import app
from toolkit.embed.dumpfile import open_embeddings
from toolkit.runs.reader import load_run
from toolkit.senses.neighbours import load, neighbours
from toolkit.text.mark import text_fingerprint

ROOT = Path(__file__).resolve().parents[2]
LAYERS, WIDTH = 5, 12
QUICK = "--head linear --word-vectors model"
QUICK += " --set evaluate.epochs=6 --set evaluate.learning_rate=0.05 --set evaluate.dropout=0"
PARTS = {"train": 60, "dev": 20, "test": 30}


def encode(tokens: list[str]) -> np.ndarray:
    """An encoder of its own kind: random projections of characters; each layer looks one token further around."""
    rng = np.random.default_rng(4)
    characters = rng.normal(size=(128, WIDTH))
    layers = [np.array([characters[[ord(c) % 128 for c in token]].mean(0) for token in tokens]).reshape(-1, WIDTH)]
    for _ in range(LAYERS - 1):
        before = np.vstack([np.zeros((1, WIDTH)), layers[-1]])[:-1]
        layers.append(np.tanh((layers[-1] + before) @ rng.normal(size=(WIDTH, WIDTH))))
    return np.stack(layers).astype(np.float16)


def write_dump(text: Path, out: Path, layer: int | None = None, **attributes: object) -> None:
    out.parent.mkdir(exist_ok=True)
    with h5py.File(out, "w") as file:
        for number, line in enumerate(text.read_text().splitlines()):
            layers = encode(line.split())
            file.create_dataset(str(number), data=layers if layer is None else layers[layer], compression="gzip")
        file.attrs.update(attributes)


def run(line: str) -> Result:
    return CliRunner().invoke(app, shlex.split(line)[1:], catch_exceptions=False)


def document(line: str) -> dict:
    result = run(f"{line} --json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def refusal(line: str) -> str:
    result = run(line)
    assert result.exit_code in (1, 2) and result.stdout == ""
    return result.stderr.splitlines()[-1]


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with task data, what `toolkit tasks export` wrote of it, and five layers a token for it."""
    folder = tmp_path / "data" / "sst2"
    folder.mkdir(parents=True)
    for part, size in PARTS.items():
        lines = [f"{i % 2} a {('dull', 'warm')[i % 2]} film , {part} {i}" for i in range(size)]
        (folder / f"stsa.binary.{part}").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TOOLKIT_DATA", str(tmp_path / "data"))
    document("toolkit tasks export sst2 -o text")
    for part in PARTS:
        write_dump(Path(f"text/{part}.txt"), Path(f"vectors/{part}.hdf5"), model_fingerprint="characters-1")
    return tmp_path


def test_exported_text_is_the_task_a_sentence_a_line(workplace: Path):
    lines = Path("text/train.txt").read_text().splitlines()
    assert len(lines) == 60 and lines[1] == "a warm film , train 1"
    again = document("toolkit tasks export sst2 -o again")
    train = again["files"][0]
    assert (train["split"], train["sentences"], train["tokens"]) == ("train", 60, 360)
    assert train["text_fingerprint"] == text_fingerprint(line.split() for line in lines)
    assert "exists already" in refusal("toolkit tasks export sst2 -o again")


def test_another_encoder_goes_through_tables_and_neighbours(workplace: Path):
    found = document(f"toolkit evaluate --task sst2 --embeddings vectors --mix none,layer:4,learned {QUICK}")
    none, fourth, learned = found["rows"]
    assert (found["layers"], found["model_fingerprint"]) == (5, "characters-1")
    assert none["representation"] == "[layer 0 12] -> 12"
    assert learned["representation"] == "[layer 0 12; mix 12] -> 24"
    assert len(learned["layer_weights"]) == 5 and fourth["layer_weights"] == [0, 0, 0, 0, 1]
    assert learned["test"] > 0.9
    read = load_run(Path("runs") / learned["runs"][0])
    assert read.summary.name == "sst2-vectors-learned-linear-s1"
    assert read.summary.model_fingerprint == "characters-1"
    assert (read.manifest["extra"]["model"], read.manifest["extra"]["layers"]) == ("vectors", 5)
    compared = document(f"toolkit compare {none['runs'][0]} {learned['runs'][0]}")
    assert compared["n"] == 30

    index = document(
        "toolkit senses index --embeddings vectors/train.hdf5 --sentences text/train.txt --words warm,dull --name w"
    )
    assert index["words"] == {"dull": 30, "warm": 30}
    occurrences = load(Path(index["output"]))
    assert (occurrences.n_layers, occurrences.vectors.shape[2]) == (5, 12)
    row = int(occurrences.of("warm")[3])
    layers = encode(occurrences.tokens(row))
    np.testing.assert_array_equal(occurrences.vectors[row], layers[:, 1])
    near = neighbours(occurrences, row, 4, 5)
    assert len(near) == 5 and all(occurrences.words[n.index] == "warm" for n in near)
    assert run("toolkit senses neighbours w --word warm --k 3").exit_code == 0
    assert "a free sentence has none" in refusal('toolkit senses neighbours w --word warm --text "A warm film."')


def test_the_example_of_the_documents_makes_such_a_file(workplace: Path):
    text = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    section = text.partition("## Vectors of another encoder")[2]
    example = section.partition("```python\n")[2].partition("```")[0]
    exec(compile(example, "formats.md", "exec"), {})
    with open_embeddings(Path("vectors/train.hdf5"), model_fingerprint="characters-1") as dump:
        assert (len(dump), dump.shape) == (60, (5, 6, 12))


@pytest.mark.slow
def test_the_dashboard_draws_runs_of_encoders_with_other_numbers_of_layers(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TOOLKIT_RUNS", str(workplace / "runs"))
    for part in PARTS:
        write_dump(Path(f"text/{part}.txt"), Path(f"one/{part}.h5"), layer=0)
    five, one = (
        document(f"toolkit evaluate --task sst2 --embeddings {name} --mix {mix} {QUICK}")["rows"][0]["runs"][0]
        for name, mix in (("vectors", "learned"), ("one", "top"))
    )
    document("toolkit senses index --embeddings vectors/dev.hdf5 --sentences text/dev.txt --words film --name f")
    for page in ("compare.py", "run_detail.py", "senses.py"):
        at = AppTest.from_file(str(ROOT / "dashboard" / "app.py"), default_timeout=30)
        at.query_params["a"], at.query_params["b"], at.query_params["run"] = five, one, five
        at.run().switch_page(f"views/{page}").run()
        assert not at.exception and not at.error, page


def test_one_layer_is_its_own_mix_without_x_k(workplace: Path):
    for part in PARTS:
        write_dump(Path(f"text/{part}.txt"), Path(f"one/{part}.h5"), layer=0)
    line = "toolkit evaluate --task sst2 --embeddings one/{split}.h5"
    (row,) = document(f"{line} --mix top {QUICK}")["rows"]
    assert (row["representation"], row["x_k"], row["layer_weights"]) == ("[mix 12] -> 12", False, [1.0])
    assert load_run(Path("runs") / row["runs"][0]).settings["evaluate.x_k"] is False
    line += " --word-vectors model"
    assert "holds one layer" in refusal(f"{line} --mix none")
    assert "task 'sst2': mix 'learned' has nothing to weigh" in refusal(f"{line} --mix top,learned")
    assert "layers 0 to 0" in refusal(f"{line} --mix layer:1")


def test_vectors_of_changed_files_are_never_taken_from_the_cache(workplace: Path):
    line = f"toolkit evaluate --task sst2 --embeddings vectors --mix top {QUICK}"
    first = document(line)["rows"][0]
    assert len(list(Path("cache/layers").glob("[!.]*"))) == 1
    document(line)
    assert len(list(Path("cache/layers").glob("[!.]*"))) == 1
    for part in PARTS:
        with h5py.File(f"vectors/{part}.hdf5", "r+") as file:
            for name in file:
                file[name][()] = 0
    assert document(line)["rows"][0]["test"] < 0.7 < first["test"]
    assert len(list(Path("cache/layers").glob("[!.]*"))) == 2


def test_dumps_of_other_sentences_are_refused_in_one_line(workplace: Path):
    line = f"toolkit evaluate --task sst2 --embeddings vectors --mix top {QUICK}"
    dev = Path("vectors/dev.hdf5")
    with h5py.File(dev, "r+") as file:
        del file["7"]
        file["7"] = np.zeros((LAYERS, 5, WIDTH), np.float16)
    assert "dev.hdf5, sentence 7: 5 vectors for the 6 tokens of 'a warm film , dev 7'" in refusal(line)
    write_dump(Path("text/dev.txt"), dev, model_fingerprint="other")
    assert "says model_fingerprint 'other'" in refusal(line)
    write_dump(Path("text/test.txt"), dev, model_fingerprint="characters-1")
    assert "holds 30 sentences, the dev split of sst2 20" in refusal(line)
    write_dump(Path("text/dev.txt"), dev, model_fingerprint="characters-1", text_fingerprint="0" * 16)
    assert "is of the text 0000000000000000, expected " in refusal(line)
    with h5py.File(dev, "w") as file:
        file["0"] = np.zeros((2, 5, WIDTH), np.float16)
    assert "dev.hdf5 holds [2, tokens, 12] a sentence" in refusal(line)
    dev.unlink()
    assert "vectors lacks dev.hdf5" in refusal(line)
    assert "one of them, not both" in refusal(f"{line} --model model")


def test_text_and_dump_of_senses_must_fit(workplace: Path):
    line = "toolkit senses index --embeddings vectors/dev.hdf5 --words warm --sentences"
    assert "holds 20 sentences, text/test.txt 30 lines" in refusal(f"{line} text/test.txt")
    Path("text/other.txt").write_text(Path("text/dev.txt").read_text().replace("dev 3", "3"))
    assert "has 6 vectors for sentence 3, text/other.txt, line 4 has 5 tokens" in refusal(f"{line} text/other.txt")
    assert "with --sentences" in refusal("toolkit senses index --embeddings vectors/dev.hdf5 --words warm")
    assert not Path("runs").exists() or all(
        json.loads((entry / "run.json").read_text())["status"] == "failed" for entry in Path("runs").iterdir()
    )


def test_labelled_rows_take_their_vectors_from_a_dump(workplace: Path):
    rows = ["word\tposition\tsense\tsentence"]
    rows += [f"film\t2\t{line.split()[1]}\t{line}" for line in Path("text/dev.txt").read_text().splitlines()]
    Path("films.tsv").write_text("\n".join(rows) + "\n")
    line = "toolkit senses index --embeddings vectors/dev.hdf5 --sentences text/dev.txt --tsv films.tsv --name f"
    assert document(line)["senses"] == 2
    purity = document("toolkit senses neighbours f --word film --k 5")["purity"]["layers"]
    assert purity[0] < 0.7 and purity[1] > 0.95
    assert "lacks the sentence" in refusal(line.replace("dev.hdf5", "test.hdf5").replace("dev.txt", "test.txt"))


@pytest.mark.slow
def test_a_bilms_dump_scores_as_the_bilm_itself_does(workplace: Path, tiny_model: Path):
    for part in PARTS:
        document(f"toolkit embed {tiny_model} text/{part}.txt -o bilm/{part}.h5")
    options = f"--task sst2 --mix learned {QUICK}"
    dumped = document(f"toolkit evaluate --embeddings bilm {options}")
    own = document(f"toolkit evaluate --model {tiny_model} {options}")
    assert dumped["rows"][0]["representation"] == own["rows"][0]["representation"].replace("ELMo", "mix")
    assert dumped["rows"][0]["layer_weights"] == pytest.approx(own["rows"][0]["layer_weights"], abs=1e-3)
    assert dumped["model_fingerprint"] == own["model_fingerprint"]
    with open_embeddings(Path("bilm/train.h5"), model_fingerprint=own["model_fingerprint"]) as dump:
        assert len(dump) == 60
