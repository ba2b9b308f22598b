"""Evaluations of a run: scores and their settings, a fall of a score, and the setting that changed."""
