"""Settings that a log prints: dumps of configurations, command lines, literals of Python."""
