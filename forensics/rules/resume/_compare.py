"""What the rules on restarts share: the parts of a finding about one restart."""

from __future__ import annotations

from forensics.analyses.resume.around import Around
from forensics.case.processes.attempts import attempts
from forensics.case.processes.lives import Boundary
from forensics.case.processes.starts import Start
from forensics.rules.kit import Evidence, EvidenceRole, Locator, Onset, Run, proof


def evidence_of(run: Run, seen: Around, boundary: Boundary) -> tuple[Evidence, ...]:
    """The first value after the restart, the last before it, and the line that says what was loaded."""
    after = seen.after.row(0, named=True)
    old = seen.before if seen.before.height else seen.replaced
    return proof(after, old.row(-1, named=True) if old.height else None, *loaded(run, boundary))


def begun(run: Run, boundary: Boundary) -> Start | None:
    """What says that the process of the new life began, in any store of the run."""
    return attempts(run).start_of(boundary.after)


def loaded_step(run: Run, boundary: Boundary) -> int | None:
    """The step of the checkpoint that the new life says it loaded."""
    return None if (start := begun(run, boundary)) is None else start.step


def loaded(run: Run, boundary: Boundary) -> tuple[Evidence, ...]:
    """Evidence of the checkpoint that the new life says it loaded; empty when it says nothing."""
    start = begun(run, boundary)
    return (said_by(start),) if start is not None and start.resumed else ()


def said_by(start: Start) -> Evidence:
    """Evidence of what a process says that it loaded."""
    said = f"resumed from step {start.step}" if start.step is not None else "resumed"
    quote = start.quote or (f"{said}: {start.path}" if start.path else said)
    where = Locator(line=start.line, byte=start.byte)
    return Evidence(start.source, where, quote, step=start.step, t_ns=start.t_ns, role=EvidenceRole.RELATED)


def around_start(seen: Around, start: Start) -> tuple[Evidence, ...]:
    """The first value behind a start in a log without steps, the last before it, and the line of the start."""
    return proof(seen.after.row(0, named=True), seen.before.row(-1, named=True), said_by(start))


def onset(boundary: Boundary) -> Onset:
    """The first step of the new life."""
    after = boundary.after
    return Onset(step=after.first, t_ns=after.t_first, rank=after.rank)
