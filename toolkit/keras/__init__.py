"""Keras 3 layers (TensorFlow backend) around a biLM."""
