"""Encoding sentences and dumping their layers."""
