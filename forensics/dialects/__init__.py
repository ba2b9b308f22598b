"""One file per log style: text in, rows out, no I/O."""
