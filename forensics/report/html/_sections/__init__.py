"""The parts of a run's page: one file each, with a value `SECTION`, found by a walk."""
