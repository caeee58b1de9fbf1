"""Every shape of biLM trains, is exported, comes back and gives what the trained graph gave, to 1e-6."""

import itertools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from oracle import Oracle

from toolkit.bilm.backend import tf
from toolkit.bilm.folder import Softmax, load_model, save_model
from toolkit.bilm.model import BiLM
from toolkit.bilm.readers import refusals
from toolkit.bilm.spec import BiLMSpec
from toolkit.cli.frame import by_direction
from toolkit.config import Embed, Model, Settings, resolve
from toolkit.embed.dump import dump
from toolkit.embed.dumpfile import open_embeddings
from toolkit.errors import UsageError
from toolkit.files import read_json
from toolkit.inspection import inspect
from toolkit.pretrain import checkpoint
from toolkit.pretrain.batches import Batches, Lexicon, unique_words
from toolkit.pretrain.graph import TrainingGraph
from toolkit.pretrain.pretrain import pretrain
from toolkit.runs.reader import read_run
from toolkit.text.prepare import Prepared, prepare
from toolkit.text.vocab import BOS, EOS, Vocabulary

TOLERANCE = 1e-6
TOKENS = 4  # of each sentence that is compared: with its marks it fills the unrolled steps
SENTENCES = ["the cats eat fish", "bees never make grass", "Unheard-of words , too", "fish fish fish ."]
SETTINGS = {
    "pretrain.preset": "tiny",
    "pretrain.unroll_steps": TOKENS + 2,
    "pretrain.batch_size": len(SENTENCES),
    "pretrain.negatives": 8,
    "pretrain.compute_dtype": "float32",
    "model.char_dim": 4,
    "model.filters": [(1, 4), (2, 8)],
    "model.max_characters_per_token": 20,
    "model.dim": 12,
    "model.projection_dim": 8,
    "text.input": "tokenised",
}

# input, layers, highway layers, D = P, residual, both directions: each pair of values stands together in some row.
COVERING = [
    ("characters", 1, 0, False, False, True),
    ("characters", 2, 2, True, False, False),
    ("characters", 3, 1, False, True, False),
    ("characters", 4, 0, True, True, True),
    ("words", 1, 0, True, True, False),
    ("words", 2, 0, False, True, True),
    ("words", 3, 0, True, False, True),
    ("words", 4, 0, False, False, False),
]
ALL = [
    shape
    for shape in itertools.product(["characters", "words"], [1, 2, 3, 4], [0, 1], *[[False, True]] * 3)
    if not (shape[0] == "words" and shape[2])
]


def options(shape: tuple) -> dict:
    kind, layers, highways, square, residual, both = shape
    return {
        "model.input": kind,
        "model.n_layers": layers,
        "model.n_highway": highways,
        "model.projection_dim": 12 if square else 8,
        "model.use_skip_connections": residual,
        "model.bidirectional": both,
    }


def settings(folder: Path, changes: dict) -> Settings:
    paths = {"paths.runs": folder / "runs", "paths.cache": folder / "cache"}
    return resolve(Path(__file__).parents[2] / "config.toml", SETTINGS | paths | changes, environment={}).settings


def name(shape: tuple) -> str:
    kind, layers, highways, square, residual, both = shape
    parts = [kind, f"L{layers}", f"highway{highways}", "D=P" if square else "P<D", "residual" if residual else "plain"]
    return "-".join([*parts, "both" if both else "forward"])


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "train.txt"
    lines = ["the cats often eat the fish .", "the cows never eat grass .", "bees make honey , and more of it ."]
    path.write_text("\n".join(lines * 40) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def prepared(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepare([corpus], None, settings(corpus.parent, {}).text, 0.1, tmp_path_factory.mktemp("cache"))


def trained(prepared: Prepared, chosen: Settings) -> tuple[TrainingGraph, Vocabulary]:
    """Return the graph behind two steps; the vocabulary lacks some words of the corpus."""
    vocabulary = Vocabulary.from_counts(prepared.words, prepared.counts, 12, 1)
    spec = BiLMSpec.from_settings(chosen.model, len(vocabulary))
    lexicon = Lexicon.build(prepared.words, vocabulary, spec.max_characters)
    batches = Batches(prepared.train, lexicon, len(vocabulary), spec, chosen.pretrain)
    graph = TrainingGraph(BiLM(spec, seed=3), len(vocabulary), chosen.pretrain, tf.float32)
    weights = [*graph.dense, *graph.words, *graph.softmax]
    before = [variable.numpy() for variable in weights]
    losses = [graph.train(batches[step])[0] for step in range(2)]
    assert np.isfinite(losses).all()
    still = [v.shape for v, old in zip(weights, before, strict=True) if (v.numpy() == old).all()]
    assert not still, "no gradient reached some variable"
    return graph, vocabulary


def graph_layers(graph: TrainingGraph, vocabulary: Vocabulary) -> np.ndarray:
    """What the training graph computes for `SENTENCES`: [B, L+1, T, 2P], marks removed.

    It gives its top layer only; the lower ones come from the graph with the layers above taken away.
    """
    bilm, spec = graph.bilm, graph.bilm.spec
    rows = [[BOS, *sentence.split(), EOS] for sentence in SENTENCES]
    words = sorted({word for row in rows for word in row})
    lexicon = Lexicon.build(words, vocabulary, spec.max_characters)
    forward = np.array([[words.index(word) for word in row] for row in rows]).T  # [T, B]
    groups, places = unique_words(lexicon, np.stack([forward, forward[::-1]][: spec.directions], 1), spec)
    states = bilm.zero_state(len(rows))
    layers, outputs = bilm.layers, []
    bottom = bilm.token_vectors(groups[0]) if spec.reads_words else bilm.token_vectors(np.concatenate(_padded(groups)))
    outputs.append(np.concatenate([bottom.numpy()[places[:, 0]]] * spec.directions, -1))
    try:
        for count in range(1, spec.n_layers + 1):
            bilm.layers = layers[:count]
            top = graph.forward(groups, places, states, None)[0].numpy()  # [T, R, B, P]
            halves = [top[:, 0], top[::-1, 1]] if spec.bidirectional else [top[:, 0]]
            outputs.append(np.concatenate(halves, -1))
    finally:
        bilm.layers = layers
    return np.stack(outputs).transpose(2, 0, 1, 3)[:, :, 1:-1]


def _padded(groups: tuple) -> list[np.ndarray]:
    widest = max(group.shape[1] for group in groups)
    return [np.pad(group, ((0, 0), (0, widest - group.shape[1])), constant_values=261) for group in groups]


def exported(folder: Path, graph: TrainingGraph, vocabulary: Vocabulary) -> Path:
    save_model(folder, graph.bilm, vocabulary, Softmax(*(v.numpy() for v in graph.softmax)), {"made_by": "a test"})
    return folder


def check_round_trip(shape: tuple, prepared: Prepared, folder: Path) -> None:
    graph, vocabulary = trained(prepared, settings(folder, options(shape)))
    model = load_model(exported(folder / "model", graph, vocabulary))
    assert model.spec == graph.bilm.spec
    (folder / "text.txt").write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    document = dump(model, folder / "text.txt", folder / "dump.h5", Embed(state="zero"))
    unknown = sum(word not in vocabulary.ids for sentence in SENTENCES for word in sentence.split())
    assert document["unknown"] == (unknown if shape[0] == "words" else None) and unknown > 3
    expected = graph_layers(graph, vocabulary)
    oracle = Oracle(folder / "model" / "options.json", folder / "model" / "weights.hdf5")
    with open_embeddings(folder / "dump.h5") as found:
        layers = np.stack(list(found))
    assert layers.shape == (len(SENTENCES), shape[1] + 1, TOKENS, model.spec.width)
    assert np.abs(layers - expected).max() <= TOLERANCE
    # A second reader, which shares no code, finds the same in the exported files.
    for sentence, found in zip(SENTENCES, layers, strict=True):
        assert np.abs(found - oracle.encode(sentence.split())[0]).max() <= 1e-5


@pytest.mark.parametrize("shape", COVERING, ids=name)
def test_a_shape_trains_and_its_export_gives_what_the_graph_gave(shape: tuple, prepared: Prepared, tmp_path: Path):
    check_round_trip(shape, prepared, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [shape for shape in ALL if shape not in COVERING], ids=name)
def test_all_other_shapes_do_so_too(shape: tuple, prepared: Prepared, tmp_path: Path):
    check_round_trip(shape, prepared, tmp_path)


def test_each_pair_of_values_stands_in_the_covering_rows():
    values = [sorted({shape[i] for shape in ALL}) for i in range(6)]
    for (i, left), (j, right) in itertools.combinations(enumerate(values), 2):
        for pair in itertools.product(left, right):
            # Words have no highway, and four layers with one highway stand among the slow ones.
            if i == 2 or j == 2:
                continue
            assert any((shape[i], shape[j]) == pair for shape in COVERING), (i, j, pair)


def test_resume_is_exact_for_an_unusual_shape(prepared: Prepared, tmp_path: Path):
    chosen = settings(tmp_path, options(("words", 1, 0, True, False, False)))
    vocabulary = Vocabulary.from_counts(prepared.words, prepared.counts, 12, 1)
    spec = BiLMSpec.from_settings(chosen.model, len(vocabulary))
    batches = Batches(
        prepared.train, Lexicon.build(prepared.words, vocabulary, 0), len(vocabulary), spec, chosen.pretrain
    )
    graph, again = (TrainingGraph(BiLM(spec, seed=3), len(vocabulary), chosen.pretrain, tf.float32) for _ in range(2))
    for step in range(3):
        graph.train(batches[step])
    checkpoint.save(tmp_path, graph, checkpoint.Progress(3, 1.0, None, None, 0.0))
    expected = [graph.train(batches[step]) for step in range(3, 9)]
    for variable in (*again.words, *again.optimizer.variables):
        variable.assign(tf.zeros_like(variable))
    checkpoint.restore(tmp_path, again)
    assert [again.train(batches[step]) for step in range(3, 9)] == expected


def test_a_forward_model_of_words_goes_the_whole_way(corpus: Path, tmp_path: Path):
    chosen = settings(tmp_path, options(("words", 1, 0, False, True, False)) | {"pretrain.steps": 3})
    document = pretrain([corpus], chosen)
    perplexity = document["validation_perplexity"]
    assert perplexity["backward"] is None and perplexity["mean"] == perplexity["forward"]
    assert by_direction(perplexity["forward"], perplexity["backward"]) == "forward only"
    run = read_run(tmp_path / "runs", document["run"])
    assert "perplexity_backward" not in {metric["name"] for metric in run.results["metrics"]}
    # The readers that refuse the shape are named in the document, the log, the card and by `inspect`.
    assert [refusal["reader"] for refusal in document["refused_by"]] == ["bilm-tf", "AllenNLP", "simple_elmo"]
    assert "AllenNLP cannot read this model: it reads characters only" in (run.summary.folder / "log.txt").read_text()
    model = Path(document["model"])
    assert read_json(model / "card.json")["refused_by"] == document["refused_by"]
    found = inspect(str(model), tmp_path)
    assert (found["input"], found["bidirectional"], found["filters"], found["width"]) == ("words", False, None, 8)
    assert found["refused_by"] == document["refused_by"]
    saved = read_json(model / "options.json")
    assert saved["bidirectional"] is False and "char_cnn" not in saved
    assert saved["n_tokens_vocab"] == len(load_model(model).vocabulary)


PUBLISHED = BiLMSpec(16, ((1, 32), (7, 1024)), 2, "relu", 50, 4096, 512, 2, 3.0, 3.0, True)


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({}, {}),
        ({"n_layers": 1, "n_highway": 0, "cell_clip": None, "activation": "tanh"}, {}),
        ({"n_layers": 4}, {}),
        ({"skip": False}, {"AllenNLP": "residual connections only"}),
        ({"dim": 512}, {"AllenNLP": r"a projection \(W_P_0\)"}),
        ({"max_characters": 40}, {"AllenNLP": "50 characters, this model's 40"}),
        ({"filters": ((1, 512),)}, {"AllenNLP": "CNN_proj"}),
        ({"filters": ((1, 32),)}, {"bilm-tf": "32 filters are fewer", "simple_elmo": "32 filters are fewer"}),
        ({"bidirectional": False}, dict.fromkeys(("bilm-tf", "AllenNLP", "simple_elmo"), "backward direction")),
        ({"n_words": 99}, dict.fromkeys(("AllenNLP", "simple_elmo"), "characters only")),
    ],
    ids=str,
)
def test_readers_that_refuse_a_shape_are_named_with_the_reason(changes: dict, lines: dict[str, str]):
    found = {refusal.reader: str(refusal) for refusal in refusals(replace(PUBLISHED, **changes))}
    assert found.keys() == lines.keys()
    for reader, pattern in lines.items():
        assert found[reader].startswith(f"{reader} cannot read this model: ") and re.search(pattern, found[reader])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"dim": 8, "projection_dim": 16}, "projection_dim 16 is above dim 8"),
        ({"filters": [(9, 4)], "max_characters_per_token": 8}, "a filter is 9 wide, a word 8 characters"),
        ({"filters": []}, "filters is empty"),
    ],
)
def test_settings_that_make_no_model_are_one_clear_line(values: dict, message: str):
    with pytest.raises(UsageError, match=message):
        BiLMSpec.from_settings(Model(**values), 10)
