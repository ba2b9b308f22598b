"""Points of a run written for another tool, one file per target; found by a walk, so a target is one new file."""
