"""Stacks of threads, and the errors that workers leave."""
