"""HNG003 culprit: which rank the others waited for, and why, from everything that the run left.

What it detects: the culprit of a hang, or of a death that only its peers report, in a job of several ranks.

Why it matters: the rank that complains is a victim; launchers name whoever's time-out fired first.

How it decides: every other rule of this folder gives clues (ranks, cause, weight, lines) from dumps, stacks, exit
codes, logs and the kernel. Weights add up per rank; ranks with three quarters of the best score are named, with the
most telling cause that is said of them. Two kinds of evidence make it sure. A tie (two ranks that differ from each
other, an even split, a ring) is answered as undecidable. Success and a stop from outside come first.

What else looks like this: nothing is decided by the complaint alone; a log that is missing looks like a silent rank.

What to do next: read the named rank's last lines and stack; `forensics hang RUN` shows who waits for whom.

References: PyTorch, "Flight Recorder for Debugging Stuck Jobs"; torch.distributed.elastic, "Error Propagation".

Example:
    ```events source,line,rank,code,text,attrs
    a.log,9,0,gloo-timeout,Timed out,"{""role"":""symptom"",""shape"":""hang""}"
    b.log,9,1,gloo-timeout,Timed out,"{""role"":""symptom"",""shape"":""hang""}"
    c.log,3,2,last_line,step 5,"{""role"":""context""}"
    ```
    => HNG003 error confidence=low rank=2 cause=never_entered decides=true clues=1 kinds=1
Not this:
    ```events source,line,rank,code,text,attrs
    a.log,5,0,success,training finished,"{""role"":""benign""}"
    a.log,9,0,gloo-timeout,Timed out,"{""role"":""symptom"",""shape"":""hang""}"
    c.log,3,2,last_line,step 5,"{""role"":""context""}"
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.hang.complaints import complaints
from forensics.analyses.hang.last_seen import last_seen
from forensics.case.errors.exits import NONZERO
from forensics.case.last_steps import last_step
from forensics.case.rank_spans import ranks_text
from forensics.knowledge.causes import causes
from forensics.rules.hang.decide import Decision, decision
from forensics.rules.kit import Evidence, Findings, Onset, Run, rule

_EVIDENCE = 6
#: Failures of these shapes have rules of their own that say it better.
_TOLD_ELSEWHERE = frozenset({"oom", "nan"})


@rule("hang", needs=("collectives", "events", "facts", "metrics", "sources", "stack_frames"), severity="error")
def culprit(run: Run) -> Findings:
    """Name the culprit of a failure of several ranks."""
    found = decision(run)
    own = complaints(run).own
    if found is None or any(own[r].shape in _TOLD_ELSEWHERE for r in found.ranks if r in own):
        return
    seen = last_seen(run)
    step = max((s for r in found.ranks if r in seen and (s := seen[r].step) is not None), default=None)
    proof = _evidence(found)
    if step is None:
        first = proof[0]
        step = last_step(run, first.source, first.locator.line or first.locator.byte or 0, first.t_ns, first.rank)
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


def title_of(found: Decision) -> str:
    """Say who did what in one line."""
    known = causes().get(found.cause)
    words = known.deed if known is not None and known.deed else found.cause.replace("_", " ")
    if found.ranks:
        told = [c.why for c in found.clues if c.cause == found.cause]
        raised = next((why for why in told if " raised " in why or found.cause == NONZERO), "")
        return raised or f"{ranks_text(found.ranks)} {words}"
    if found.tied:
        return f"undecided between {ranks_text(found.tied)}: {words}"
    if known is not None and known.deed:
        return known.says[:1].lower() + known.says[1:].rstrip(".")
    return words


def _evidence(found: Decision) -> tuple[Evidence, ...]:
    every = [e for clue in found.clues for e in clue.evidence]
    return tuple(dict.fromkeys(every))[:_EVIDENCE]
