"""Rules of the NaN shape."""
