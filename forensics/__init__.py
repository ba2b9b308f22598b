"""What went wrong in a training run, from the files it left: offline, exact, with evidence."""
