"""Train on one device with a batch of 8 and on two with 4 each; print how far apart they are (run by a test)."""

import json
import math
import sys
from types import SimpleNamespace

import numpy as np

from toolkit.bilm.backend import tf
from toolkit.bilm.model import BiLM
from toolkit.bilm.spec import BiLMSpec
from toolkit.config import Pretrain
from toolkit.pretrain.batches import Batches, Lexicon
from toolkit.pretrain.distribute import ALONE, Replicas
from toolkit.pretrain.gradients import norms
from toolkit.pretrain.graph import TrainingGraph
from toolkit.text.vocab import BOS, EOS, UNK, Vocabulary

STEPS = 20
RATES = {"adam": 0.002, "adagrad": 0.2}


def main(shape: str, optimizer: str) -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    replicas = Replicas(tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]))
    one, one_batches = make(shape, optimizer, ALONE, 8)
    two, two_batches = make(shape, optimizer, replicas, 4)
    start = [variable.numpy() for variable in one.variables_trained]
    for step in range(STEPS):
        one.train(one_batches[step])
        two.train(*two_batches.shares(step))
    local = replicas.strategy.experimental_local_results
    result = {
        "joined batch": two_batches.batch_size,
        "steps": [int(one.steps.numpy()), int(two.steps.numpy())],
        "weights": far(one.variables_trained, two.variables_trained),
        "slots": far(one.optimizer.variables, two.optimizer.variables),
        "averages": far(one.averages.values, two.averages.values),
        "states": far(one.states, two.joined_states),
        "between replicas": max(
            float(np.abs(local(v)[0].numpy() - local(v)[1].numpy()).max()) for v in two.variables_trained
        ),
        "moved": max(
            float(np.abs(v.numpy() - before).max()) for v, before in zip(one.variables_trained, start, strict=True)
        ),
    }
    states = [state.numpy() for state in two.joined_states]
    for state, value in zip(two.joined_states, states, strict=True):
        state.assign(np.zeros_like(value))
        state.assign(value)
    result["put back"] = all(
        np.array_equal(s.numpy(), value) for s, value in zip(two.joined_states, states, strict=True)
    )
    two.softmax_bias.assign(np.full(two.softmax_bias.shape, np.nan, np.float32))
    dense = [variable.numpy() for variable in two.dense]
    shares = two_batches.shares(STEPS)
    _, norm = two.train(*shares)
    result["not finite"] = {
        "norm": "nan" if math.isnan(norm) else norm,
        "changed": max(float(np.abs(v.numpy() - before).max()) for v, before in zip(two.dense, dense, strict=True)),
        "parts": len(norms(two, shares[0])) > 1,
    }
    print(json.dumps(result))


def make(shape: str, optimizer: str, replicas: Replicas, rows: int) -> tuple[TrainingGraph, Batches]:
    words = [f"w{i}" for i in range(60)]
    vocabulary = Vocabulary([BOS, EOS, UNK, *words[:50]])
    rng = np.random.default_rng(0)
    sentences = [rng.integers(0, 60, rng.integers(2, 9)) for _ in range(200)]
    starts = np.concatenate([[0], np.cumsum([len(s) for s in sentences])]).astype(np.int64)
    tokens = np.concatenate(sentences).astype(np.int32)
    stream = SimpleNamespace(tokens=tokens, starts=starts, n_sentences=len(sentences), n_tokens=len(tokens))
    n_words = len(vocabulary) if shape == "words" else None
    spec = BiLMSpec(4, ((1, 8), (3, 8)), 1, "relu", 20, 24, 12, 2, 3.0, 3.0, True, n_words)
    recipe = {"optimizer": optimizer, "learning_rate": RATES[optimizer], "average": 0.9}
    settings = Pretrain(batch_size=rows, unroll_steps=4, negatives=10, dropout=0.2, seed=3, **recipe)
    with replicas.scope():
        graph = TrainingGraph(BiLM(spec, 1), len(vocabulary), settings, tf.float32, replicas)
    lexicon = Lexicon.build(words, vocabulary, spec.max_characters)
    return graph, Batches(stream, lexicon, len(vocabulary), spec, settings, replicas.count, replicas.members)


def far(ones: list, others: list) -> float:
    """The largest difference between two lists of variables."""
    return max(float(np.abs(a.numpy() - b.numpy()).max()) for a, b in zip(ones, others, strict=True))


main(*sys.argv[1:])
