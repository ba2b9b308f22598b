"""Findings to one answer, and the answers of commands that look closer."""
