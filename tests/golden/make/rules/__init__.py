"""Runs in which rules fire, and runs that only look as if they should."""
