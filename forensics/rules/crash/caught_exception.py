"""CRH005 caught-exception: an exception was raised, and the run went on.

What it detects: tracebacks and root error lines after which training went on, or which the run's good end makes
harmless: retries, workers that are started anew, readers that leave a record out.

Why it matters: it did not end the run, but it may have cost data, time, or a worker; the same one may be fatal later.

How it decides: the same rank logged at least three further steps; or, for a rank that logs none, the other ranks logged
a hundred; or the run says later that it finished; or the same process raised it again, or the program did so five times
or more over a minute or more while no launcher told of an end, and the log goes on after the last one. Equal errors are
counted, those of each kind named once.

What else looks like this: an error of an earlier run in the same file (see CRH006), and output of the last steps that
was still in a buffer when the traceback was printed.

What to do next: if there are many, look for what they have in common (one worker, one file, one host).

References: Python documentation, `logging`, "exc_info"; Ray, "Fault tolerance".

Example:
    ```metrics source,line,seq,step,name,value
    a.log,1,1,10,loss,2.5
    a.log,9,2,20,loss,2.4
    a.log,10,3,30,loss,2.3
    a.log,11,4,40,loss,2.2
    ```
    ```events source,line,code,text,attrs
    a.log,5,traceback,ValueError: bad record,"{""role"":""root"",""exc"":""ValueError"",""message"":""bad record""}"
    ```
    => CRH005 info confidence=high step=10 step_lo=10 cause=caught_exception causal=context exceptions=1 kinds=1
Not this: an exception that ended the run
    ```metrics source,line,seq,step,name,value
    a.log,1,1,10,loss,2.5
    ```
    ```events source,line,code,text,attrs
    a.log,5,traceback,ValueError: bad record,"{""role"":""root"",""exc"":""ValueError"",""message"":""bad record""}"
    ```
    => nothing
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from forensics.case.errors.failures import failures
from forensics.case.errors.kinds import Weight
from forensics.model import Causal, Confidence, Finding, Severity, Shape
from forensics.registry import rule
from forensics.rules._errors import evidence_of, onset_of, ranks_of, said, short, when
from forensics.store.run import Run

_KINDS = 4


@rule(shape=Shape.CRASH, needs=("events", "metrics"))
def caught_exception(run: Run) -> Iterator[Finding]:
    """Count the exceptions that were survived."""
    found = [f for f in failures(run) if f.cleared in {"progress", "finished", "recurring"} and f.exception]
    found = [f for f in found if f.shape == "crash" and f.weight == Weight.OWN]
    if not found:
        return
    kinds = Counter(short(said(f)) for f in found)
    first = found[0]
    onset = onset_of(run, first)
    times = f"{len(found)} times" if len(found) > 1 else "once"
    named = "; ".join(f"{words} ({count} times)" for words, count in kinds.most_common(_KINDS))
    yield caught_exception.finding(
        severity=Severity.INFO,
        confidence=Confidence.HIGH if first.cleared == "progress" else Confidence.MEDIUM,
        title=f"an exception was raised {times}{when(onset)}, and the run went on: {short(said(first))}",
        because=f"training steps or a success marker follow it: {named}",
        evidence=evidence_of(found),
        onset=onset,
        culprits=ranks_of(found),
        cause="caught_exception",
        causal=Causal.CONTEXT,
        numbers={"exceptions": len(found), "kinds": len(kinds)},
        likely=tuple(dict.fromkeys(f.where for f in found if f.where))[:_KINDS],
        next=("if there are many, look for what they have in common: one worker, one file, one host",),
    )
