"""Stores of experiment trackers."""
