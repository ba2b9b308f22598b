"""A log of a trainer that nobody described: its lines are learned from the log itself."""
