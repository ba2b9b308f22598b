"""Attempts that die at one step, one after the other, in words."""

from __future__ import annotations

from forensics.case.attempts import attempts
from forensics.store.run import Run


def loop_words(run: Run) -> str:
    """Say that attempts died where the judged one did, and from which checkpoint all went on; empty where none did."""
    loop = attempts(run).loop
    if not loop:
        return ""
    steps = {one.start.step for one in loop if one.start is not None}
    only = steps.pop() if len(steps) == 1 else None
    return f"{len(loop)} attempts died at step {loop[-1].last}" + (
        "" if only is None else f" from the checkpoint of step {only}"
    )
