"""Evaluation results of two runs side by side."""
