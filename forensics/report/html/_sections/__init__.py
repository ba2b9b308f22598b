"""The parts of a run's page: files with a value `SECTIONS`, found by a walk."""
