"""Runs on either side of the numbers that decide."""
