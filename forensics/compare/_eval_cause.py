"""Which change between two runs an evaluation section may name as the most plausible cause; the config audit's seam."""

from __future__ import annotations

from forensics.store.run import Run


def cause_of(base: Run, cand: Run) -> str | None:
    """Name the most plausible difference of configuration between two runs; None where nothing ranks them."""
    del base, cand
    return None
