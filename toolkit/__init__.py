"""Pretrain an ELMo-style biLM, dump its layers, and look at what a word means in its sentence.

Shapes in docstrings use one legend: B batch, T tokens, C characters, U distinct words of a batch, L LSTM layers
(embeddings hold L+1 layers, layer 0 being the token layer), P projection, D cell, V vocabulary.
"""

import os

# TensorFlow writes start-up chatter to standard error unless told otherwise before its first import.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

__version__ = "0.1.0"
