"""Rules about where a job hangs by its dumps: stacks of the processes, and the recorder of their collectives."""
