"""Checkpoints that a program could not write, and trained on."""

from __future__ import annotations

from forensics.case.errors.coded import events_telling
from forensics.case.errors.kinds import attributes
from forensics.rules.kit import Findings, Onset, Row, Run, event_evidence, rule, times


@rule(
    "RSM011 checkpoint-not-written",
    "checkpoints events",
    severity="warning",
    confidence="medium",
    cause="checkpoint_not_written",
)
def not_written(run: Run) -> Findings:
    """Find the first checkpoint, or part of one, of which a log says that it could not be written."""
    rows = events_telling(run, "save_failed", order=("source", "line", "seq"))
    if rows.is_empty():
        return
    saved = run.scan("checkpoints").select("source", "line", "step").drop_nulls().collect().rows()
    lost: list[tuple[Row, int | None]] = []
    for row in rows.iter_rows(named=True):
        step = int(attributes(row["attrs"]).get("step", row["step"] if row["step"] is not None else -1))
        again = ((row["source"], step) == (source, at) and line > (row["line"] or 0) for source, line, at in saved)
        if not any(again):
            lost.append((row, None if step < 0 else step))
    if not lost:
        return
    first, step = lost[0]
    ranks = tuple(sorted({row["rank"] for row, _ in lost if row["rank"] is not None}))
    named = f" of step {step}" if step is not None else ""
    yield not_written.finding(
        f"a checkpoint{named} could not be written whole ({times(len(lost))})",
        "the log says so, and no later line says that the same step was saved",
        tuple(event_evidence(row) for row, _ in lost[:4]),
        Onset(step=step, t_ns=first["t_ns"], rank=ranks[0] if len(ranks) == 1 else None),
        culprits=ranks,
        numbers={"failed": len(lost)},
        next=("read the file back before you resume from it: a part of it is missing",),
    )
