"""Settings of two runs side by side."""
