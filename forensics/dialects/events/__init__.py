"""What a line of a log says beside its numbers: known errors, tracebacks, tables of launchers, collectives."""
