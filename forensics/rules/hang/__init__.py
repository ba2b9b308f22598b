"""Rules of the hang shape."""
