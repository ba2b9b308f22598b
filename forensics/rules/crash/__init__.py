"""Rules for errors outside of the five shapes."""
