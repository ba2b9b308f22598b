"""The errors of a run: each failure once, judged, in order of time."""
