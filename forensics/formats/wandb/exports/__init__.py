"""Histories of W&B runs as they are exported."""
