"""The loss of a run as curves, with their noise."""
