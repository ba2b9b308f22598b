"""NAN007 nan-detector-lines: the run has a NaN detector, and this is what it said.

What it detects: the lines of a trainer's own NaN detector, how many there are, from which step to which, and whether
the run stopped itself.

Why it matters: a detector's line gives the exact step where the metrics are printed only now and then. Many detectors
skip the update, so weights stay as they were and later checkpoints may still be good; a stop may look like a normal
end.

How it decides: events that a dialect marks as its NaN lines are counted; `least` consecutive ones without a finite
loss between them are a run that can only stop.

What else looks like this: a start-up line that says that a detector is on; a word about NaN in printed source code.

What to do next: read the first line, not the last. Where all ranks share one flag, log the loss per rank to find the
origin.

References: the documentation of the trainer that printed the line.

Example:
    ```events source,line,step,code,text
    run.log,3,37,mytrainer.nan,loss is not finite
    run.log,4,38,mytrainer.nan,loss is not finite
    run.log,5,39,mytrainer.nan,loss is not finite
    ```
    => NAN007 info confidence=high step=37 cause=detector causal=context lines=3
Not this:
    ```events source,line,step,code,text
    run.log,3,0,mytrainer.started,the NaN detector is on
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.nan.detector import detector_lines
from forensics.rules.kit import EvidenceRole, Findings, Run, at_step, event_evidence, onset_at, proof, rule


@dataclass(frozen=True, slots=True)
class Consecutive:
    """How many detections say that the run could not go on; most detectors stop at ten."""

    least: int = 10


@rule(
    "nan", needs=("events",), config=Consecutive, severity="info", confidence="high", cause="detector", causal="context"
)
def detector_said(run: Run, cfg: Consecutive) -> Findings:
    """Count the detector's lines."""
    rows = detector_lines(run)
    if not rows:
        return
    first, last = rows[0], rows[-1]
    ends = (event_evidence(last, EvidenceRole.RELATED),) if len(rows) > 1 else ()
    many = len(rows) >= cfg.least
    yield detector_said.finding(
        f"the run's NaN detector fired {len(rows)} times, first at {at_step(first['step'])}",
        "often enough that such detectors stop the run by themselves" if many else "its own lines say so",
        proof(event_evidence(first), *ends),
        onset_at(first),
        numbers={"lines": len(rows)},
        next=("forensics nan-origin RUN",),
    )
