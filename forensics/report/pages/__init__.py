"""Answers of the commands other than triage."""
