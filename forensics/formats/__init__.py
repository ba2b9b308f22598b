"""One file per format on disk."""
