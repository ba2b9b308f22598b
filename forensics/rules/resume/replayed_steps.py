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
    ```metrics
    attempt: 0*24 1*12
    step: 0..23 20..31
    loss: 2.02 1.97 1.99 1.96 1.96 1.97 1.92 1.94 1.91 1.91 1.92 1.87 1.89 1.86 1.86 1.87 1.82 1.84 1.81 1.81 1.82
        1.77 1.79 1.76 1.81 1.78 1.78 1.79 1.74 1.76 1.73 1.73 1.74 1.69 1.71 1.68
    ```
    => RSM006 info confidence=high step=20 cause=replayed_steps causal=context restarts=1 replayed_steps=4
Not this:
    ```metrics
    attempt: 0*24 1*12
    step: 0..35
    loss: 2.02 1.97 1.99 1.96 1.96 1.97 1.92 1.94 1.91 1.91 1.92 1.87 1.89 1.86 1.86 1.87 1.82 1.84 1.81 1.81 1.82
        1.77 1.79 1.76 1.81 1.78 1.78 1.79 1.74 1.76 1.73 1.73 1.74 1.69 1.71 1.68
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.resume.around import around
from forensics.case.processes.lives import restarts
from forensics.rules.kit import Findings, Run, rule
from forensics.rules.resume._compare import evidence_of, onset

_QUANTITIES = ("loss", "reward", "grad_norm", "lr")


@rule(
    "learning",
    needs=("metrics", "checkpoints"),
    severity="info",
    confidence="high",
    cause="replayed_steps",
    causal="context",
)
def replayed_steps(run: Run) -> Findings:
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
    yield replayed_steps.finding(
        f"{steps} steps were done twice in {len(replays)} restart{'s' if len(replays) > 1 else ''}",
        f"the run reached step {first.before.last} and then goes on from step {first.after.first}"
        + (f"; {forks} of the restarts go on from the same earlier attempt" if forks else ""),
        evidence_of(run, seen, first),
        onset(first),
        numbers={"restarts": len(every), "replayed_steps": steps, "forks": forks},
    )
