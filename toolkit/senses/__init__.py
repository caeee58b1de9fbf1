"""Occurrences of words and what their neighbours say of their sense."""
