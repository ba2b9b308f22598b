"""One file per command; the only folder that knows terminals and exit codes."""
