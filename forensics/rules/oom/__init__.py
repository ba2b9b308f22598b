"""Rules of the out-of-memory shape."""
