"""Processes that SIGKILL ended, and the sender where it is known.

Exit code -9 (137 in a shell) has three meanings: the host's memory killer, a scheduler or launcher that ends the job
(a time limit, a cancel, the tear-down after another rank's failure), or a person. Only words of the kernel, the cgroup
or the scheduler tell them apart, or a resident memory that rose until then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from forensics.analyses.memory.oom_messages import OomMessage, oom_messages
from forensics.case.errors.exits import cause_of
from forensics.case.errors.failures import Failure, standing
from forensics.case.errors.kinds import Weight
from forensics.store.run import Run

#: The cause of a process that SIGKILL ended, sender unknown.
KILLED = cause_of(-9)
Meaning = Literal["memory", "scheduler", "tear-down", "unknown"]


class Death(Struct, frozen=True):
    """A SIGKILL: its printed line, its meaning, and the line that names the sender (None for an unknown one)."""

    failure: Failure
    meaning: Meaning
    proof: Failure | OomMessage | None


def killed(run: Run) -> tuple[Failure, ...]:
    """List the SIGKILLs that the run did not survive, in order, those that name no sender."""
    return tuple(f for f in standing(run) if f.cause == KILLED)


def death_of(run: Run) -> Death | None:
    """Judge the first SIGKILL of a run; None when there was none."""
    found = killed(run)
    if not found:
        return None
    host = (m for m in oom_messages(run) if m.where == "host" and not m.survived)
    stops = (f for f in standing(run) if f.weight == Weight.STOP)
    own = (f for f in standing(run) if f.weight in {Weight.OWN, Weight.ECHO} and f.cause != KILLED)
    proofs: dict[Meaning, Iterator[Failure | OomMessage]] = {"memory": host, "scheduler": stops, "tear-down": own}
    told = (Death(found[0], meaning, proof) for meaning, some in proofs.items() for proof in some)
    return next(told, Death(found[0], "unknown", None))
