"""Rules of the bad-eval shape."""
