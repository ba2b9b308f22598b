"""Which process wrote what: starts, lives on one time line, launches of groups, and the attempts that they make."""
