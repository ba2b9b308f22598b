"""Logs of GPU counters."""
