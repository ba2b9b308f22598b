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
from forensics.rules.hang._decide import Decision, decision
from forensics.rules.kit import Evidence, Findings, Onset, Run, rule

_EVIDENCE = 6
#: Failures of these shapes have rules of their own that say it better.
_TOLD_ELSEWHERE = frozenset({"oom", "nan"})
WORDS = {
    "never_entered": "did not come to the collective that the others wait in",
    "host_stall": "stood still outside any collective",
    "host_stall_loop": "ran in a loop outside any collective",
    "host_stall_gil": "held the interpreter lock",
    "frozen_process": "was frozen",
    "slow_storage_read": "was reading data that did not come",
    "slow_storage_checkpoint": "was still writing a checkpoint",
    "rank_conditional_work": "worked alone while the others waited",
    "uneven_data": "had another number of steps than the others",
    "extra_collective": "issued one collective more than the others",
    "skipped_collective": "left out a collective that the others issued",
    "collective_mismatch_op": "issued another operation than the others",
    "collective_mismatch_size": "issued another size than the others",
    "collective_mismatch_dtype": "issued another element type than the others",
    "pg_order_deadlock": "used process groups in another order than the others",
    "p2p_cycle": "sends and receives wait for each other in a ring",
    "device_stall": "went on enqueuing while the device stood still",
    "init_hang": "did not join the job",
    "rendezvous_timeout": "too few nodes came to the rendezvous",
    "early_exit": "left early with exit code 0",
    "node_loss": "died together with their node",
    "model_mismatch": "built another model than the others",
    "port_in_use": "could not listen on the store's port",
    "crash_all_ranks": "all ranks died of the same signal",
    "exception_one_rank": "raised an exception",
    "silent_death_sigkill": "was killed (SIGKILL, sender unknown)",
    "silent_death_segv": "died of a segmentation fault",
    "silent_death_sigbus": "died of a bus error",
    NONZERO: "ended with a non-zero exit code",
}


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
        next=("forensics hang RUN shows who waits for whom and when each rank was last seen",),
        decides=True,
    )


def title_of(found: Decision) -> str:
    """Say who did what in one line."""
    words = WORDS.get(found.cause, found.cause.replace("_", " "))
    if found.ranks:
        told = [c.why for c in found.clues if c.cause == found.cause]
        raised = next((why for why in told if " raised " in why or found.cause == NONZERO), "")
        return raised or f"{ranks_text(found.ranks)} {words}"
    if found.tied:
        return f"undecidable between {ranks_text(found.tied)}: {found.cause.replace('_', ' ')}"
    return words


def _evidence(found: Decision) -> tuple[Evidence, ...]:
    every = [e for clue in found.clues for e in clue.evidence]
    return tuple(dict.fromkeys(every))[:_EVIDENCE]
