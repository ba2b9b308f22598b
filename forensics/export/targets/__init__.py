"""What points are written for: one file per target, found by a walk, so a new file is a new target."""
