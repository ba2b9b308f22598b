"""CRH002 signal-death: a process was ended by a signal that it did not ask for.

What it detects: segmentation fault, bus error, abort of a data-loader worker, and SIGKILL with no word of who sent it.

Why it matters: no Python traceback exists; the exit code is all there is, and a SIGKILL has many senders.

How it decides: an exit code or a line that names the signal, in a run that did not go on. SIGKILL is stated as "sender
unknown": the kernel's memory killer, a scheduler and a person all send it.

What else looks like this: a launcher that kills the remaining workers after one failed, and an operator who kills a run
whose loss was already lost.

What to do next: look at the kernel log and the scheduler's record of that minute; set `faulthandler` on.

References: signal(7); torch.distributed.elastic "Error Propagation".

Example:
    ```events source,line,rank,code,text,attrs
    train.log,9,3,exit139,rank 3 exited with code 139,"{""role"":""root"",""shape"":""crash""}"
    ```
    => CRH002 error confidence=medium rank=3 cause=silent_death_segv
Not this:
    ```events source,line,code,text,attrs
    train.log,9,pg-not-destroyed,process group has NOT been destroyed,"{""role"":""benign"",""shape"":""crash""}"
    ```
    => nothing
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from forensics.analyses.memory.host_deaths import KILLED
from forensics.case.errors.failures import Failure, standing
from forensics.case.errors.kinds import death_of
from forensics.case.errors.timeline import in_order
from forensics.model import Causal, Confidence, Finding, Severity, Shape
from forensics.registry import rule
from forensics.rules._errors import evidence_of, onset_of, ranks_of, when, who
from forensics.store.run import Run

_BLOCK = re.compile(r"^\W*(?:exitcode|traceback)\s*:")
_LOCAL_RANK = re.compile(r"\blocal_rank: (\d{1,6})\b")


@rule(shape=Shape.CRASH, needs=("events", "metrics"))
def signal_death(run: Run) -> Iterator[Finding]:
    """Find the first process that died of a signal."""
    found = in_order(f for f in standing(run) if death_of(f.code))
    if not found:
        return
    first = _placed(found)
    onset = onset_of(run, first)
    killed = first.cause == KILLED
    yield signal_death.finding(
        severity=Severity.ERROR,
        confidence=Confidence.MEDIUM,
        title=f"{who(first.rank)} {death_of(first.code)}{when(onset)}",
        because="its exit code or the launcher says so, and no later step was logged",
        evidence=evidence_of((first, *(f for f in found if f.at != first.at or f.source != first.source))),
        onset=onset,
        culprits=ranks_of((first,)),
        cause=first.cause,
        causal=Causal.SYMPTOM if killed else Causal.ROOT,
        likely=("the kernel's memory killer", "a scheduler or a person") if killed else (),
        next=("read the kernel log and the scheduler's record of that minute",),
    )


def _placed(found: Sequence[Failure]) -> Failure:
    """Give the first death, preferring the one of the same kind that names its rank, in its words or by its file.

    A launcher prints its root cause last.
    """
    same = [f for f in found if f.cause == found[0].cause]
    block = next((f for f in reversed(same) if f.rank is not None and _BLOCK.match(f.quote)), None)
    if block is not None:
        return block
    named = [f if f.rank is not None else replace(f, rank=_local_rank(f.quote)) for f in same]
    return next((f for f in named if f.rank is not None), found[0])


def _local_rank(quote: str) -> int | None:
    hit = _LOCAL_RANK.search(quote)
    return int(hit[1]) if hit else None
