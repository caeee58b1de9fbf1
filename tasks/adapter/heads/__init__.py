"""Classifiers behind a representation: one file each, found by its `HEAD`."""
