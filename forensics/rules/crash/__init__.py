"""Rules for errors that are none of the five shapes."""
