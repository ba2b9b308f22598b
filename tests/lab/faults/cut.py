"""Nothing decides: a log that ends in the middle, by a kill that nobody printed."""

from __future__ import annotations

from faults.row import NONE, Fault

ROWS = (Fault("cut-kill", "cannot_say|suspect", NONE, onset=False, ends="unfinished"),)
