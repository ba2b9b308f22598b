"""Evaluations of a run: what was scored and how, whether a score fell, and which setting of the evaluation changed."""
