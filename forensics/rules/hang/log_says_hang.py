"""HNG001 log-says-hang: a watchdog or a time-out in the log says that ranks waited for each other in vain.

What it detects: NCCL and gloo time-outs, desync and heartbeat monitors, rendezvous and barrier time-outs.

Why it matters: the rank that complains is a victim; the culprit is the rank that reported nothing, or failed earlier.

How it decides: at least one time-out that was not followed by further steps. Silence alone never makes a hang. When
the ranks that complain are a strict majority, those that say nothing, and do not wait themselves, are named (as HNG012
finds them). Without dumps a rank that waits in another place is a victim too.

What else looks like this: time-outs after an out-of-memory error or an exception of one rank (a consequence), and
watchdog noise while a finished run is torn down.

What to do next: read the last lines of the rank that did not complain; next time set TORCH_NCCL_TRACE_BUFFER_SIZE and
collect a py-spy dump.

References: PyTorch, torch.distributed, "Debugging"; ProcessGroupNCCL watchdog.

Example:
    ```events source,line,rank,code,text,attrs
    train.log,9,0,nccl-watchdog,Watchdog caught collective timeout,"{""role"":""symptom"",""shape"":""hang""}"
    train.log,10,1,nccl-watchdog,Watchdog caught collective timeout,"{""role"":""symptom"",""shape"":""hang""}"
    train.log,3,2,last_line,step 5,"{""role"":""context""}"
    ```
    => HNG001 error confidence=medium onset_rank=0 rank=2 cause=never_entered causal=symptom reports=2 ranks_silent=1
Not this:
    ```events source,line,code,text,attrs
    train.log,9,fsdp-prefetch-hang,async_prefetch: true,"{""role"":""context"",""shape"":""hang""}"
    ```
    => nothing
"""

from __future__ import annotations

from forensics.case.errors.failures import standing
from forensics.case.errors.kinds import Weight
from forensics.case.errors.timeline import in_order
from forensics.case.rank_spans import ranks_text
from forensics.rules._errors import evidence_of, onset_of, ranks_of, when
from forensics.rules.hang.silent_rank import silent_rank
from forensics.rules.kit import Findings, Run, rule


@rule(
    "hang",
    needs=("collectives", "events", "facts", "metrics", "sources", "stack_frames"),
    severity="error",
    confidence="medium",
)
def log_says_hang(run: Run) -> Findings:
    """Find time-outs that ended the run, and the ranks that did not report one."""
    found = in_order(f for f in standing(run) if f.shape == "hang")
    if not found:
        return
    first = found[0]
    onset = onset_of(run, first)
    victims = set(ranks_of(found))
    silent = tuple(rank for clue in silent_rank.find(run) for rank in clue.ranks)
    named = silent if len(silent) < len(victims) else ()
    waited = ranks_text(sorted(victims)) if victims else "the run"
    blame = f"; {ranks_text(named)} reported nothing" if named else ""
    yield log_says_hang.finding(
        f"{waited} timed out waiting for the others{when(onset)}{blame}",
        "a watchdog or a time-out reported it, and no later step was logged",
        evidence_of(found),
        onset,
        culprits=named,
        cause="never_entered" if named else first.cause,
        causal="root" if first.weight >= Weight.ECHO else "symptom",
        numbers={"reports": len(found), "ranks_reporting": len(victims), "ranks_silent": len(named)},
    )
