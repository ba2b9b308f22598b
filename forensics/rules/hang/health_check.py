"""HNG019 liveness-probe-failed: the training loop's own probe found that not all ranks take part.

What it detects: `NCCL health check failed at step N`, which a probe prints when the sum over ranks is not the number of
ranks.

Why it matters: the probe came back, so this is no dead rank: one rank took another branch (for example it skipped a
step after a NaN), and the next collectives pair wrongly. A rank that is really dead makes the probe itself hang.

How it decides: such a line after which the run did not go on.

What else looks like this: a probe line of an earlier attempt that was restarted.

What to do next: look for what only one rank does at that step; make the decision to skip a collective one (all-reduce
the flag); keep a time-out for dead ranks.

References: KempnerForge, distributed health checks.

Example:
    ```events source,line,step,code,text,attrs
    t.log,40,70,health-check,NCCL health check failed at step 70,"{""role"":""context""}"
    ```
    => HNG019 error confidence=medium step=70 cause=partial_participation
Not this:
    ```metrics step,name,value,source,seq,line
    71,loss,2.5,t.log,1,41
    72,loss,2.4,t.log,2,42
    73,loss,2.3,t.log,3,43
    74,loss,2.3,t.log,4,44
    ```
    ```events source,line,step,code,text,attrs
    t.log,40,70,health-check,NCCL health check failed at step 70,"{""role"":""context""}"
    ```
    => nothing
"""

from __future__ import annotations

import re

from forensics.analyses.hang.lines import matching
from forensics.case.end_markers import SURVIVED_STEPS, marks_of
from forensics.rules.kit import Findings, Onset, Run, event_evidence, proof, rule

_FAILED = re.compile(r"(?:NCCL )?health check failed at step (?P<step>\d{1,12})")


@rule("hang", needs=("events", "metrics"), severity="error", confidence="medium", cause="partial_participation")
def health_check(run: Run) -> Findings:
    """Find a liveness probe that failed and ended the run."""
    end = marks_of(run)
    for row, hit in matching(run, _FAILED, "health check failed at step"):
        if end.steps_of(row["source"]).at_least(SURVIVED_STEPS, after=row["line"] or row["byte"] or 0):
            continue
        step = int(hit["step"])
        yield health_check.finding(
            f"the liveness probe failed at step {step}: not all ranks take part",
            "the probe came back with a wrong sum, so ranks live but took different branches",
            proof(event_evidence(row)),
            Onset(step=step, t_ns=row["t_ns"], rank=row["rank"]),
        )
        return
