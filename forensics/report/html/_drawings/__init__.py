"""How each type of figure is drawn: one file each, with a value `DRAWING`, found by a walk."""
