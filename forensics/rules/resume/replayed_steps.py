"""RSM006 resume-replayed-steps: steps were done again after a restart.

What it detects: steps that stand in the log twice, because a restart went back to the last checkpoint.

Why it matters: a curve drawn over both copies shows a fold that is none; counts and averages over all records are
wrong; and the replayed steps are work that was lost.

How it decides: a life begins at a step that an earlier one had already done. The later copy is the one that counts.
Two lives that go on from one and the same earlier one are named a fork.

What else looks like this: several ranks that log the same step; two runs that log into one folder.

What to do next: nothing, if the loss goes on cleanly; else see the other rules on resuming.

References: none; the steps themselves are the proof.

Example:
    ```metrics seq,attempt,step,name,value
    0,0,0,loss,2.02
    1,0,1,loss,1.97
    2,0,2,loss,1.99
    3,0,3,loss,1.96
    4,0,4,loss,1.96
    5,0,5,loss,1.97
    6,0,6,loss,1.92
    7,0,7,loss,1.94
    8,0,8,loss,1.91
    9,0,9,loss,1.91
    10,0,10,loss,1.92
    11,0,11,loss,1.87
    12,0,12,loss,1.89
    13,0,13,loss,1.86
    14,0,14,loss,1.86
    15,0,15,loss,1.87
    16,0,16,loss,1.82
    17,0,17,loss,1.84
    18,0,18,loss,1.81
    19,0,19,loss,1.81
    20,0,20,loss,1.82
    21,0,21,loss,1.77
    22,0,22,loss,1.79
    23,0,23,loss,1.76
    24,1,20,loss,1.81
    25,1,21,loss,1.78
    26,1,22,loss,1.78
    27,1,23,loss,1.79
    28,1,24,loss,1.74
    29,1,25,loss,1.76
    30,1,26,loss,1.73
    31,1,27,loss,1.73
    32,1,28,loss,1.74
    33,1,29,loss,1.69
    34,1,30,loss,1.71
    35,1,31,loss,1.68
    ```
    => RSM006 info confidence=high step=20 cause=replayed_steps causal=context restarts=1 replayed_steps=4
Not this:
    ```metrics seq,attempt,step,name,value
    0,0,0,loss,2.02
    1,0,1,loss,1.97
    2,0,2,loss,1.99
    3,0,3,loss,1.96
    4,0,4,loss,1.96
    5,0,5,loss,1.97
    6,0,6,loss,1.92
    7,0,7,loss,1.94
    8,0,8,loss,1.91
    9,0,9,loss,1.91
    10,0,10,loss,1.92
    11,0,11,loss,1.87
    12,0,12,loss,1.89
    13,0,13,loss,1.86
    14,0,14,loss,1.86
    15,0,15,loss,1.87
    16,0,16,loss,1.82
    17,0,17,loss,1.84
    18,0,18,loss,1.81
    19,0,19,loss,1.81
    20,0,20,loss,1.82
    21,0,21,loss,1.77
    22,0,22,loss,1.79
    23,0,23,loss,1.76
    24,1,24,loss,1.81
    25,1,25,loss,1.78
    26,1,26,loss,1.78
    27,1,27,loss,1.79
    28,1,28,loss,1.74
    29,1,29,loss,1.76
    30,1,30,loss,1.73
    31,1,31,loss,1.73
    32,1,32,loss,1.74
    33,1,33,loss,1.69
    34,1,34,loss,1.71
    35,1,35,loss,1.68
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator

from forensics.case.lives import restarts
from forensics.model import Causal, Confidence, Finding, Severity, Shape
from forensics.registry import rule
from forensics.rules.resume._compare import around, evidence_of, onset
from forensics.store.run import Run

_QUANTITIES = ("loss", "reward", "grad_norm", "lr")


@rule("RSM006", shape=Shape.LEARNING, needs=("metrics", "checkpoints"))
def replayed_steps(run: Run, _cfg: None = None) -> Iterator[Finding]:
    """Say how often the run was restarted and how many steps were done again, at the first such restart."""
    every = restarts(run)
    replays = [b for b in every if b.kind == "replays"]
    if not replays:
        return
    first = replays[0]
    seen = next((s for name in _QUANTITIES if (s := around(run, first, name)) is not None), None)
    if seen is None:
        return
    steps = sum(b.replayed for b in replays)
    forks = sum(b.fork for b in every)
    yield Finding(
        rule="RSM006",
        shape=Shape.LEARNING,
        severity=Severity.INFO,
        confidence=Confidence.HIGH,
        title=f"{steps} steps were done twice in {len(replays)} restart{'s' if len(replays) > 1 else ''}",
        because=f"the run reached step {first.before.last} and then goes on from step {first.after.first}"
        + (f"; {forks} of the restarts are forks of one earlier life" if forks else ""),
        evidence=evidence_of(run, seen, first),
        onset=onset(first),
        cause="replayed_steps",
        causal=Causal.CONTEXT,
        numbers={"restarts": len(every), "replayed_steps": steps, "forks": forks},
        next=("use the later copy of each step",),
    )
