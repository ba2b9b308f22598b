"""Rules of the slowdown shape."""
