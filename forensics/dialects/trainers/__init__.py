"""Trainers, a table each: `NAME.toml` in one of the folders here is a dialect, and nothing else is edited for it."""
