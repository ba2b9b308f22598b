"""Points of a run written for another tool; `targets/` holds one file per tool."""
