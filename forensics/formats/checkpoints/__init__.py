"""Checkpoints, by their names and headers."""
