"""Rules on profiler traces: what a step is spent on, and what grew."""
