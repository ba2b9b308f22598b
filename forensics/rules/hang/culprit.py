"""The rank that the others waited for."""

from __future__ import annotations

from forensics.analyses.hang.complaints import complaints
from forensics.analyses.hang.last_seen import last_seen, stands_at
from forensics.case.errors.exits import NONZERO
from forensics.case.errors.failures import Failure
from forensics.case.last_steps import last_step
from forensics.case.rank_spans import ranks_text
from forensics.knowledge.causes import causes
from forensics.knowledge.errors import of_host
from forensics.rules.hang.clue import RANKS
from forensics.rules.hang.decide import Decision, decision
from forensics.rules.hang.no_progress import stood_still_since
from forensics.rules.kit import Findings, Onset, Run, Shape, rule
from forensics.values import replace

_EVIDENCE = 6
#: Failures of these shapes have rules of their own that say it better.
_TOLD_ELSEWHERE = frozenset({"oom", "nan"})


@rule("HNG003 culprit", RANKS, severity="error")
def culprit(run: Run) -> Findings:
    """Name the culprit of a failure of several ranks."""
    found = decision(run)
    own = complaints(run).own
    if found is None or any(_told_elsewhere(own[r]) for r in found.ranks if r in own):
        return
    seen = last_seen(run)
    step = max((s for r in found.ranks if r in seen and (s := seen[r].step) is not None), default=None)
    proof = tuple(dict.fromkeys(e for clue in found.clues for e in clue.evidence))[:_EVIDENCE]
    if all(e.t_ns is None for e in proof) and any(clue.kind == "stack" for clue in found.clues):
        proof = (replace(proof[0], t_ns=stood_still_since(run)), *proof[1:])
    if step is None:
        first = proof[0]
        step = last_step(run, first.source, first.locator.line or first.locator.byte or 0, first.t_ns, first.rank)
        step = stands_at(run) if step is None and found.shape is Shape.HANG else step
    yield culprit.finding(
        title_of(found) + (f" (last step {step})" if step is not None else ""),
        "; ".join(c.why for c in found.clues[:3]),
        proof,
        Onset(step=step, rank=found.ranks[0] if found.ranks else None, step_lo=step),
        shape=found.shape,
        confidence=found.confidence,
        culprits=found.ranks,
        cause=found.cause,
        numbers={"clues": len(found.clues), "kinds": len({c.kind for c in found.clues})},
        next=("forensics hang RUN",),
        decides=True,
    )


def _told_elsewhere(failure: Failure) -> bool:
    """Whether a rule of its own says it better: of a fault of a device the line of its host names the kind."""
    return failure.shape in _TOLD_ELSEWHERE or failure.code in of_host()


def title_of(found: Decision) -> str:
    """Say who did what in one line."""
    known = causes().get(found.cause)
    words = found.deed or (known.deed if known is not None else "") or found.cause.replace("_", " ")
    if found.ranks:
        told = [c.why for c in found.clues if c.cause == found.cause]
        raised = next((why for why in told if " raised " in why or found.cause == NONZERO), "")
        return raised or f"{ranks_text(found.ranks)} {words}"
    if found.tied:
        return f"undecided between {ranks_text(found.tied)}: {words}"
    if known is not None and known.deed:
        return known.says[:1].lower() + known.says[1:].rstrip(".")
    return words
