"""HNG013 first-exception: one rank failed by itself, and the others waited for it.

What it detects: an error of a rank's own (not a lost peer, not a time-out, not a tear-down) in a job of several ranks.

Why it matters: the wait of all others is its consequence, even when the failed process lingers and nobody sees it go.

How it decides: the earliest such error of ranks; when half of the ranks or more have one, it is no matter of one rank.

What else looks like this: exceptions that are logged and survived, which are left out.

What to do next: open the last frame of your own code in that traceback.

References: torch.distributed.elastic, "Error Propagation".

Example:
    ```events source,line,rank,code,text,attrs
    a.log,9,0,gloo-closed,Connection closed by peer,"{""role"":""symptom"",""shape"":""hang"",""cause"":""peer_gone""}"
    b.log,9,1,gloo-closed,Connection closed by peer,"{""role"":""symptom"",""shape"":""hang"",""cause"":""peer_gone""}"
    c.log,7,2,traceback,ValueError: bad width,"{""role"":""root"",""exc"":""ValueError"",""message"":""bad width""}"
    ```
    => HNG013 info confidence=medium rank=2 cause=exception_one_rank causal=context weight=7
Not this:
    ```events source,line,rank,code,text,attrs
    a.log,9,0,traceback,ValueError: bad width,"{""role"":""root"",""exc"":""ValueError"",""message"":""bad width""}"
    b.log,9,1,traceback,ValueError: bad width,"{""role"":""root"",""exc"":""ValueError"",""message"":""bad width""}"
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator

from forensics.analyses.hang.complaints import complaints
from forensics.case.errors.failures import Failure
from forensics.case.errors.kinds import UNKNOWN
from forensics.case.errors.timeline import in_order
from forensics.case.world import world
from forensics.knowledge.suspects import suspect
from forensics.rules._errors import of_failure
from forensics.rules.hang.clue import Clue, gives_clues
from forensics.rules.kit import Run

_CHARS = 120


@gives_clues()
def first_exception(run: Run) -> Iterator[Clue]:
    """The earliest own error, when few ranks have one."""
    own = complaints(run).own
    if not own or len(own) * 2 >= max(3, len(world(run))):
        return
    first = in_order(own.values())[0]
    if first.rank is None:
        return
    said = (first.message or first.quote).strip().splitlines()
    what = f"{first.exception or 'an error'}: {said[0][:_CHARS] if said else ''}".rstrip(": ")
    yield Clue((first.rank,), cause_of(first), 7, "log", f"rank {first.rank} raised {what}", (of_failure(first),))


def cause_of(failure: Failure) -> str:
    """Give the cause's slug: its own where the error is special, else that one rank raised."""
    if failure.shape in {"oom", "nan"}:
        return failure.cause
    return suspect(failure.cause or UNKNOWN[2]).of_one_rank or failure.cause
