"""Adapting a trained biLM: its softmax kept, mapped or fresh; figures before and after; resume; bad input."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from oracle import write_random_model, write_random_softmax
from typer.testing import CliRunner

from toolkit.bilm.folder import Softmax, load_model, save_model
from toolkit.bilm.model import BiLM
from toolkit.bilm.weights import weights_fingerprint
from toolkit.cli.main import app
from toolkit.config import Resolved, resolve
from toolkit.embed.score import Scorer, score
from toolkit.errors import DataError, FormatError, UsageError
from toolkit.files import read_json
from toolkit.pretrain import vocabularies
from toolkit.pretrain.adapt import adapt, begin, describe, resume, settings_for
from toolkit.pretrain.pretrain import resume as resume_pretraining
from toolkit.runs.reader import read_metrics, read_run
from toolkit.text.chars import char_rows
from toolkit.text.vocab import UNK, Vocabulary

# The models of the fixtures know these words and "bank", "spring", "money".
TEXT = "the film was a joy .\nthe river was in the film .\na joy to the film .\nthe dull film was a bore .\n" * 60
VALID = "the film was a bore .\na joy was in the film .\nthe river was dull .\n" * 5
ALSO = "the film was a joy\n\na bank of the river .\n"


def write_texts(folder: Path) -> Path:
    (folder / "corpus").mkdir()
    (folder / "corpus" / "train.txt").write_text(TEXT, encoding="utf-8")
    (folder / "corpus" / "valid.txt").write_text(VALID, encoding="utf-8")
    (folder / "also.txt").write_text(ALSO, encoding="utf-8")
    return folder


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return write_texts(tmp_path)


@pytest.fixture(scope="module")
def adapted_run(tmp_path_factory: pytest.TempPathFactory, scoring_model: Path) -> tuple[Path, dict]:
    """An adaptation of the scoring model with its own softmax, and its document."""
    folder = write_texts(tmp_path_factory.mktemp("adapted"))
    chosen = resolved(folder, "pretrain.steps=10")
    return folder, adapt(scoring_model, [folder / "corpus"], chosen, also=[folder / "also.txt"], name="first")


def resolved(folder: Path, *assignments: str) -> Resolved:
    options = {
        "pretrain.batch_size": 4,
        "pretrain.unroll_steps": 4,
        "pretrain.negatives": 8,
        "pretrain.compute_dtype": "float32",
        "pretrain.steps": 2,
        "pretrain.schedule": "constant",  # so that a short run is the beginning of a long one
        "pretrain.warmup_steps": 0,
        "text.input": "tokenised",
        "vocabulary.min_count": 1,
        "paths.runs": folder / "runs",
        "paths.cache": folder / "cache",
    }
    return resolve(Path(__file__).parents[2] / "config.toml", options, assignments, environment={})


def test_the_models_own_softmax_is_trained_on(scoring_model: Path, adapted_run):
    _, document = adapted_run
    parent, adapted = load_model(scoring_model), load_model(Path(document["model"]))
    assert adapted.vocabulary.words == parent.vocabulary.words
    assert adapted.spec == parent.spec
    assert document["vocabulary"] == {"from": "own", "softmax": "own", "words": 17}
    # The parent's softmax is random and bold: anything learned is better.
    assert document["validation_perplexity"]["mean"] < 0.8 * document["before"]["mean"]
    assert document["before"]["n"] == document["validation_perplexity"]["n"] == len(VALID.split()) + VALID.count("\n")
    assert not np.array_equal(adapted.softmax().weight, parent.softmax().weight)


def test_the_run_the_card_and_the_results_name_the_parent(scoring_model: Path, adapted_run):
    place, document = adapted_run
    parent, adapted = load_model(scoring_model), load_model(Path(document["model"]))
    run = read_run(place / "runs", document["run"])
    assert run.summary.kind == "pretrain" and run.summary.status == "done"
    assert run.manifest["model_fingerprint"] == adapted.fingerprint != parent.fingerprint
    for origin in (run.manifest["extra"]["adapted_from"], adapted.card["adapted_from"], document["parent"]):
        assert origin["fingerprint"] == parent.fingerprint
        assert origin["model"] == str(scoring_model)
    assert run.settings["pretrain.learning_rate"] == 0.0005
    assert run.settings["model.dim"] == parent.spec.dim
    values = {(m["name"], m["split"]): m["value"] for m in run.results["metrics"]}
    assert values["perplexity", "valid"] == document["validation_perplexity"]["mean"]
    assert values["perplexity_before", "valid"] == document["before"]["mean"]
    assert values["perplexity", "also.txt"] == document["also"][0]["after"]["mean"]
    assert values["perplexity_before", "also.txt"] == document["also"][0]["before"]["mean"]


def test_other_texts_are_measured_as_toolkit_score_does(scoring_model: Path, adapted_run):
    place, document = adapted_run
    (row,) = document["also"]
    for moment, model in (("before", scoring_model), ("after", Path(document["model"]))):
        expected = score(load_model(model), place / "also.txt")
        assert row[moment]["mean"] == pytest.approx(expected["perplexity"], rel=1e-6)
        assert row[moment]["forward"] == pytest.approx(expected["perplexity_forward"], rel=1e-6)
        assert row[moment]["backward"] == pytest.approx(expected["perplexity_backward"], rel=1e-6)
        assert (row["n"], row["unknown"]) == (expected["targets"], expected["unknown"])
    assert row["before"]["mean"] != row["after"]["mean"]


def test_held_out_perplexity_before_is_that_of_score_where_the_protocols_agree(scoring_model: Path, place: Path):
    """Sixteen sentences of one length: validation reads one a row, from zero, as `score --state zero` does."""
    lines = ["the film was dull and the river", "a joy to the bank in spring"] * 8
    assert {len(line.split()) for line in lines} == {7}
    (place / "corpus" / "valid.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    _, origin, _ = begin(scoring_model, [place / "corpus"], resolved(place))
    before, expected = origin["before"], score(load_model(scoring_model), place / "corpus" / "valid.txt", "zero")
    assert before["n"] == expected["targets"] == 16 * 8
    assert before["forward"] == pytest.approx(expected["perplexity_forward"], rel=1e-3)
    assert before["backward"] == pytest.approx(expected["perplexity_backward"], rel=1e-3)
    assert before["mean"] == pytest.approx(expected["perplexity"], rel=1e-3)


def small_softmax(seed: int) -> tuple[Softmax, Vocabulary]:
    old = Vocabulary(["<S>", "</S>", UNK, "the", "bank", "river"])
    rng = np.random.default_rng(seed)
    return Softmax(rng.normal(size=(6, 3)).astype(np.float32), rng.normal(size=6).astype(np.float32)), old


def test_words_of_both_vocabularies_keep_their_rows_exactly():
    softmax, old = small_softmax(1)
    new = Vocabulary(["<S>", "</S>", UNK, "film", "river", "joy", "the"])
    counts = np.array([9.0, 9.0, 3.0, 5.0, 4.0, 1.0, 20.0])
    found = vocabularies.mapped(softmax, old, new, counts)
    for word in ("<S>", "</S>", "river", "the"):
        assert np.array_equal(found.weight[new.id(word)], softmax.weight[old.id(word)]), word
        assert found.bias[new.id(word)] == softmax.bias[old.id(word)], word
    for word, share in ((UNK, 4 / 12), ("film", 6 / 12), ("joy", 2 / 12)):
        assert np.array_equal(found.weight[new.id(word)], softmax.weight[old.id(UNK)]), word
        assert found.bias[new.id(word)] == pytest.approx(softmax.bias[old.id(UNK)] + math.log(share), abs=1e-6)
    assert found.weight.dtype == found.bias.dtype == np.float32


def test_new_words_share_the_probability_of_the_unknown_word():
    softmax, old = small_softmax(2)
    new = Vocabulary([*old.words, "film", "joy"])
    found = vocabularies.mapped(softmax, old, new, np.array([1, 1, 2, 9, 9, 9, 7, 0.0]))
    h = np.random.default_rng(3).normal(size=3)

    def probabilities(layer: Softmax) -> np.ndarray:
        e = np.exp(layer.weight.astype(np.float64) @ h + layer.bias)
        return e / e.sum()

    before, after = probabilities(softmax), probabilities(found)
    others = [0, 1, 3, 4, 5]
    np.testing.assert_allclose(after[others], before[others], rtol=1e-6)
    assert after[[2, 6, 7]].sum() == pytest.approx(before[2], rel=1e-6)


def test_a_vocabulary_that_stays_the_same_keeps_the_softmax_to_the_bit():
    softmax, old = small_softmax(4)
    found = vocabularies.mapped(softmax, old, old, np.arange(6.0))
    assert np.array_equal(found.weight, softmax.weight) and np.array_equal(found.bias, softmax.bias)


def test_a_rebuilt_vocabulary_is_that_of_the_corpus_and_is_said(scoring_model: Path, place: Path, caplog):
    caplog.set_level("INFO")
    chosen, texts = resolved(place, "vocabulary.size=9"), [place / "also.txt"]
    trainer, origin, _ = begin(scoring_model, [place / "corpus"], chosen, vocabulary="rebuild", also=texts)
    words = trainer.vocabulary
    # The most frequent words only, the three special tokens included.
    assert words.words == ["<S>", "</S>", UNK, "the", "film", ".", "was", "a", "joy"]
    record = {"from": "rebuilt", "words": 9, "softmax": "mapped", "kept": 7, "new": 2, "left_out": 10}
    assert origin["vocabulary"] == record
    assert (
        "7 keep their rows of the softmax, 2 new ones start from <UNK>'s, 10 of the model's are left out" in caplog.text
    )
    # "before" is of the carried-over softmax under the new vocabulary, not of the parent's own.
    parent = load_model(scoring_model)
    counts = np.array([240, 240, 0, *(TEXT.split().count(word) for word in words.words[3:])], float)
    counts[2] = len(TEXT.split()) - counts[3:].sum()
    start = vocabularies.mapped(parent.softmax(), parent.vocabulary, words, counts)
    assert np.array_equal(trainer.graph.softmax_weight, start.weight)
    assert np.array_equal(trainer.graph.softmax_bias, start.bias)
    scorer = Scorer(replace(parent, vocabulary=words), softmax=start)
    found = [s for s in scorer.scores([line.split() for line in ALSO.splitlines()]) if s.tokens]
    nll = sum(s.forward + s.backward for s in found) / (2 * sum(s.targets for s in found))
    assert origin["also"][0]["mean"] == pytest.approx(math.exp(nll), rel=1e-5)


def test_a_vocabulary_file_gives_the_words(scoring_model: Path, place: Path):
    words = ["<S>", "</S>", UNK, "film", "the", "zebra"]
    (place / "words.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    document = adapt(scoring_model, [place / "corpus"], resolved(place), vocabulary=str(place / "words.txt"))
    assert load_model(Path(document["model"])).vocabulary.words == words
    assert document["vocabulary"]["from"] == str(place / "words.txt")
    assert (document["vocabulary"]["kept"], document["vocabulary"]["new"]) == (4, 2)


def test_a_model_without_a_softmax_gets_one_that_starts_from_the_unigrams(tiny_model: Path, place: Path, caplog):
    caplog.set_level("INFO")
    document = adapt(tiny_model, [place / "corpus"], resolved(place, "pretrain.steps=60", "adapt.learning_rate=0.02"))
    assert document["vocabulary"]["softmax"] == "fresh"
    assert "the model brings no softmax: a fresh one starts from the unigrams" in caplog.text
    words, sentences = TEXT.split(), TEXT.count("\n")
    total = len(words) + 2 * sentences + document["vocabulary"]["words"]
    targets = [*VALID.split(), *["</S>"] * VALID.count("\n")]
    counts = {word: words.count(word) for word in set(targets)} | {"</S>": sentences}
    expected = math.exp(-np.mean([math.log((counts[word] + 1) / total) for word in targets]))
    assert document["before"]["forward"] == pytest.approx(expected, rel=1e-4)
    assert document["validation_perplexity"]["mean"] < 0.95 * expected


def test_words_are_cut_where_the_model_cuts_them(place: Path):
    model = write_random_model(place / "short", 7, ("the", "film"), max_characters_per_token=6)
    write_random_softmax(model, 8)
    (place / "corpus" / "train.txt").write_text(TEXT.replace("dull", "dullllllllll"), encoding="utf-8")
    trainer, _, settings = begin(model, [place / "corpus"], resolved(place))
    assert settings.model.max_characters_per_token == 6
    number = trainer.prepared.words.index("dullllllllll")
    assert trainer.lexicon.rows[number].tolist() == char_rows(["dull"], 6)[0].tolist()


def test_training_begins_with_the_parents_weights(scoring_model: Path, place: Path):
    trainer, _, _ = begin(scoring_model, [place / "corpus"], resolved(place))
    parent = load_model(scoring_model)
    assert weights_fingerprint(trainer.graph.bilm) == parent.fingerprint
    softmax = parent.softmax()
    assert np.array_equal(trainer.graph.softmax_weight, softmax.weight)
    assert np.array_equal(trainer.graph.softmax_bias, softmax.bias)


def test_it_stops_when_held_out_perplexity_no_longer_falls_and_exports_the_best(adapted_run, place: Path):
    """A far too large learning rate makes a trained model worse at once: the best state is the start."""
    model = Path(adapted_run[1]["model"])
    bad = ("adapt.learning_rate=5", "adapt.patience=2", "pretrain.validate_steps=1", "pretrain.steps=30")
    document = adapt(model, [place / "corpus"], resolved(place, *bad))
    assert (document["ended"], document["steps"], document["exported_step"]) == ("patience", 2, 0)
    assert document["validation_perplexity"] == document["before"]
    assert load_model(Path(document["model"])).fingerprint == load_model(model).fingerprint
    assert "the exported weights are those of the start" in describe(document)
    # The default name and the parent are those of the model that was adapted itself.
    assert document["run"].endswith("-pretrain-adapt-first")
    assert document["parent"]["fingerprint"] == load_model(model).fingerprint


@pytest.mark.parametrize("vocabulary", ["own", "rebuild"])
def test_a_model_that_reads_words_takes_its_table_along(place: Path, vocabulary: str):
    source = load_model(write_random_model(place / "characters", 7, ("the", "bank", "river", "film")))
    shape = {"char_dim": 0, "filters": (), "n_highway": 0, "max_characters": 0, "n_words": 7, "cell_clip": None}
    bilm, words = BiLM(replace(source.spec, **shape), 3), source.vocabulary
    softmax = Softmax(np.random.default_rng(1).normal(size=(7, 8)).astype(np.float32), np.zeros(7, np.float32))
    save_model(place / "words", bilm, words, softmax, {})
    trainer, _, settings = begin(place / "words", [place / "corpus"], resolved(place), vocabulary=vocabulary)
    assert settings.model.input == "words" and settings.model.cell_clip == 0
    assert trainer.graph.bilm.spec.cell_clip is None
    table, old = trainer.graph.bilm.embedding.numpy(), bilm.embedding.numpy()
    assert len(table) == len(trainer.vocabulary) == (7 if vocabulary == "own" else 14)
    for word in trainer.vocabulary.words:
        assert np.array_equal(table[trainer.vocabulary.id(word)], old[words.id(word)]), word


def test_a_resumed_adaptation_equals_one_that_never_stopped(scoring_model: Path, adapted_run, place: Path):
    folder, first = adapted_run
    shutil.copytree(folder / "runs", place / "runs")
    second = resume(place / "runs", "first", {"steps": 20})
    texts = [folder / "also.txt"]
    chosen = resolved(place, "pretrain.steps=20", f"paths.cache={str(folder / 'cache')!r}")
    long = adapt(scoring_model, [folder / "corpus"], chosen, also=texts, name="long")
    assert second["run"] == first["run"] and second["steps"] == second["exported_step"] == 20
    for key in ("before", "also", "parent", "vocabulary", "validation_perplexity"):
        assert second[key] == long[key], key
    assert load_model(Path(second["model"])).fingerprint == load_model(Path(long["model"])).fingerprint
    assert load_model(Path(second["model"])).card["adapted_from"]["fingerprint"] == second["parent"]["fingerprint"]
    losses = []
    for document in (second, long):
        metrics = read_metrics(place / "runs" / document["run"])
        rows = metrics[(metrics.name == "perplexity") & (metrics.split == "train")]
        losses.append(dict(zip(rows.step, rows.value, strict=True)))
    assert losses[0] == losses[1]


def test_an_adaptation_is_resumed_by_its_own_command_and_on_its_own_texts(adapted_run):
    place, _ = adapted_run
    with pytest.raises(UsageError, match="run of `toolkit adapt`: go on with `toolkit adapt --resume first`"):
        resume_pretraining(place / "runs", "first", {})
    (place / "also.txt").write_text("another text\n", encoding="utf-8")
    try:
        with pytest.raises(DataError, match=r"also\.txt has changed since"):
            resume(place / "runs", "first", {"steps": 11})
    finally:
        (place / "also.txt").write_text(ALSO, encoding="utf-8")


def test_a_contradicting_shape_is_refused_and_that_of_a_preset_ignored(scoring_model: Path, place: Path):
    parent = load_model(scoring_model)
    assert settings_for(parent, resolved(place, "pretrain.preset=original")).model.dim == 24
    assert settings_for(parent, resolved(place, "model.dim=24")).model.dim == 24
    with pytest.raises(UsageError, match=r"model\.dim = 48 \(--set\), but .* has 24: an adapted model keeps its shape"):
        settings_for(parent, resolved(place, "model.dim=48"))
    with pytest.raises(UsageError, match=r"model\.filters = "):
        settings_for(parent, resolved(place, "model.filters=[[1, 4]]"))


def test_the_learning_rate_is_that_of_adapt_and_below_pretrainings(scoring_model: Path, place: Path):
    parent = load_model(scoring_model)
    chosen = resolved(place)
    assert settings_for(parent, chosen).pretrain.learning_rate == 0.0005 < chosen.settings.pretrain.learning_rate
    assert settings_for(parent, resolved(place, "adapt.learning_rate=0.0001")).pretrain.learning_rate == 0.0001
    with pytest.raises(
        UsageError, match=r"pretrain\.learning_rate is for pretraining: say --set adapt\.learning_rate="
    ):
        settings_for(parent, resolved(place, "pretrain.learning_rate=0.1"))


def test_another_casing_than_the_models_is_said(scoring_model: Path, place: Path, caplog):
    parent = load_model(scoring_model)
    cased = replace(parent, card={"text": {"language": "en", "lowercase": True}})
    settings_for(cased, resolved(place))
    assert "the model was trained with text.lowercase = True, this run reads with False" in caplog.text


def test_bad_input_is_one_clear_line_and_leaves_no_run(scoring_model: Path, tiny_model: Path, place: Path):
    corpus, chosen = [place / "corpus"], resolved(place)
    with pytest.raises(UsageError, match="holds no softmax"):
        adapt(tiny_model, corpus, chosen, vocabulary="own")
    with pytest.raises(UsageError, match=r"--vocab rebuilt: no such file; it takes own, rebuild or a vocabulary file"):
        adapt(scoring_model, corpus, chosen, vocabulary="rebuilt")
    with pytest.raises(UsageError, match=r"no file at .*nothing"):
        adapt(scoring_model, corpus, chosen, also=[place / "nothing.txt"])
    with pytest.raises(UsageError, match="nowhere"):
        adapt(scoring_model, [place / "nowhere"], chosen)
    damaged = shutil.copytree(scoring_model, place / "damaged")
    (damaged / "weights.hdf5").write_bytes(b"not HDF5")
    with pytest.raises(FormatError, match="not a readable HDF5 file"):
        adapt(damaged, corpus, chosen)
    shutil.copy(scoring_model / "weights.hdf5", damaged)
    with h5py.File(damaged / "softmax.h5", "w") as file:
        file["softmax/W"], file["softmax/b"] = np.zeros((3, 8)), np.zeros(3)
    with pytest.raises(FormatError, match=r"W has the shape \(3, 8\)"):
        adapt(damaged, corpus, chosen)
    assert not (place / "runs").exists()


@pytest.mark.slow
def test_the_command_prints_before_and_after(scoring_model: Path, place: Path, monkeypatch):
    monkeypatch.chdir(place)
    monkeypatch.setenv("TOOLKIT_CACHE", str(place / "cache"))
    small = "--set pretrain.batch_size=4 --set pretrain.unroll_steps=4 --set text.input=tokenised"
    line = f"adapt {scoring_model} --corpus corpus --also also.txt --steps 4 {small} --name first"
    result = CliRunner().invoke(app, line.split())
    assert result.exit_code == 0, result.stderr
    assert "held-out text of the corpus" in result.stdout and "also.txt" in result.stdout
    result = CliRunner().invoke(app, ["adapt", "--resume", "first", "--steps", "6", "--json"])
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["steps"] == 6
    assert (
        document["parent"]["fingerprint"]
        == read_json(Path(document["model"]) / "card.json")["adapted_from"]["fingerprint"]
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("adapt", "either MODEL --corpus PATH"),
        ("adapt model", "either MODEL --corpus PATH"),
        ("adapt model --resume run", "with --resume only"),
        ("adapt --resume run --seed 0", "with --resume only"),
        ("adapt nothing --corpus corpus", "no model 'nothing'"),
        ("adapt --resume nothing", "no run"),
    ],
)
def test_a_wrong_command_line_is_one_line(place: Path, monkeypatch, line: str, said: str):
    monkeypatch.chdir(place)
    result = CliRunner().invoke(app, line.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr and len(result.stderr.splitlines()) == 1
