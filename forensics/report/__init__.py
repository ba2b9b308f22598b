"""One file per renderer."""
