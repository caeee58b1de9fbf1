"""The step as a GPU gets it, compiled whole by XLA and in fixed shapes, beside the one of a CPU."""

from types import SimpleNamespace

import numpy as np
import pytest

from toolkit.bilm.backend import tf
from toolkit.bilm.model import BiLM
from toolkit.bilm.spec import BiLMSpec
from toolkit.config import Pretrain
from toolkit.pretrain.batches import FIXED_MULTIPLE, Batches, Lexicon, fixed_shapes
from toolkit.pretrain.graph import TrainingGraph
from toolkit.text.vocab import BOS, EOS, UNK, Vocabulary

STEPS = 4
SETTINGS = Pretrain(batch_size=3, unroll_steps=3, negatives=10, dropout=0.2, seed=3)
RECIPES = {
    "adagrad": {"optimizer": "adagrad", "learning_rate": 0.2},
    "adam": {"learning_rate": 0.02, "average": 0.9},
}


def batches(spec: BiLMSpec) -> Batches:
    words = ["w" * (1 + i % 17) + str(i) for i in range(60)]
    vocabulary = Vocabulary([BOS, EOS, UNK, *words[:50]])
    rng = np.random.default_rng(0)
    sentences = [rng.integers(0, 60, rng.integers(2, 9)) for _ in range(100)]
    starts = np.concatenate([[0], np.cumsum([len(s) for s in sentences])]).astype(np.int64)
    tokens = np.concatenate(sentences).astype(np.int32)
    stream = SimpleNamespace(tokens=tokens, starts=starts, n_sentences=len(sentences), n_tokens=len(tokens))
    return Batches(stream, Lexicon.build(words, vocabulary, spec.max_characters), len(vocabulary), spec, SETTINGS)


@pytest.mark.slow
@pytest.mark.parametrize("n_words", [None, 53], ids=["characters", "words"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_the_step_compiled_whole_equals_the_step_in_pieces(n_words: int | None, recipe: str) -> None:
    spec = BiLMSpec(4, ((1, 8), (3, 8)), 1, "relu", 30, 12, 6, 2, 3.0, 3.0, True, n_words)
    source = batches(spec)
    settings = SETTINGS.model_copy(update=RECIPES[recipe])
    graphs = [TrainingGraph(BiLM(spec, 1), 53, settings, tf.float32, whole=whole) for whole in (True, False)]
    start = graphs[0].softmax_weight.numpy()
    for step in range(STEPS):
        (loss, norm), expected = (graph.train(source[step]) for graph in graphs)
        assert (loss, norm) == pytest.approx(expected, rel=1e-5)
    parts = [(*g.variables_trained, *g.optimizer.variables, *g.averages.values, *g.states) for g in graphs]
    for ours, theirs in zip(*parts, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)
    assert np.abs(graphs[0].softmax_weight - start).max() > 0.01


def test_fixed_shapes_move_no_word_and_add_rows_that_nothing_refers_to() -> None:
    spec = BiLMSpec(4, ((1, 8), (3, 8)), 1, "relu", 30, 12, 6, 2, 3.0, 3.0, True)
    batch = batches(spec)[1]
    fixed = fixed_shapes(batch, spec)
    (group,) = fixed.groups
    assert group.shape == (FIXED_MULTIPLE, 30) and fixed.rows.shape == (FIXED_MULTIPLE,)
    width = batch.groups[0].shape[1]
    np.testing.assert_array_equal(group[: len(batch.groups[0]), :width], batch.groups[0])
    assert fixed.inputs.max() < sum(len(g) for g in batch.groups)
    assert max(fixed.targets.max(), fixed.sampled.max()) < len(batch.rows)


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
@pytest.mark.parametrize("n_words", [None, 53], ids=["characters", "words"])
def test_no_sum_of_a_step_depends_on_which_buffer_is_free_first(n_words: int | None, dtype: tf.DType) -> None:
    # AddN of three or more begins with an input that nobody else holds any more: its rounding changes from run to run.
    spec = BiLMSpec(4, ((1, 8), (3, 8)), 1, "relu", 30, 12, 6, 2, 3.0, 3.0, True, n_words)
    graph = TrainingGraph(BiLM(spec, 1), 53, SETTINGS, dtype, whole=False)
    operations = graph._step.get_concrete_function().graph.get_operations()
    assert len(operations) > 500
    assert [op.name for op in operations if op.type == "AddN" and len(op.inputs) > 2] == []
