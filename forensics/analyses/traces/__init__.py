"""Where the time of profiler traces went."""
