"""Encode sentences with simple_elmo; tests/contracts/test_simple_elmo.py starts it with the peer's own interpreter.

    TF_USE_LEGACY_KERAS=1 PYTHON simple_elmo_client.py OUT.npz MODEL …   < sentences.json

OUT holds all layers of sentence s by model m under the name "m-s". Each sentence is a call of its own, without a
warm-up: simple_elmo then starts it from the zero state.
"""

import json
import sys

import numpy as np
import tensorflow as tf
from simple_elmo import ElmoModel

out, *paths = sys.argv[1:]
sentences = json.load(sys.stdin)
found = {}
for m, path in enumerate(paths):
    tf.compat.v1.reset_default_graph()
    model = ElmoModel()
    model.load(path)
    for s, tokens in enumerate(sentences):
        found[f"{m}-{s}"] = model.get_elmo_vectors([tokens], warmup=False, layers="all")[0]
np.savez(out, **found)
