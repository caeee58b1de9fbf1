"""Pretrain an ELMo-style biLM, dump its layers, and look at what a word means in its sentence.

Shapes in docstrings use one legend: B batch, T tokens, C characters, U distinct words of a batch, L LSTM layers
(embeddings hold L+1 layers, layer 0 being the token layer), P projection, D cell, V vocabulary.

What Python code needs stands here: `load_bilm`, `open_embeddings`, and the Keras layers `ElmoEmbedding` and
`ScalarMix`. Each is imported when it is first touched, so that `import toolkit` stays light.
"""

import os
from importlib import import_module

# TensorFlow writes start-up chatter to standard error unless told otherwise before its first import.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

__version__ = "0.1.0"

_HOMES = {
    "ElmoEmbedding": "toolkit.keras.elmo_embedding",
    "ScalarMix": "toolkit.keras.scalar_mix",
    "load_bilm": "toolkit.embed.api",
    "open_embeddings": "toolkit.embed.dumpfile",
}
__all__ = ["ElmoEmbedding", "ScalarMix", "__version__", "load_bilm", "open_embeddings"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
