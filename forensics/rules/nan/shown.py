"""How a NaN shows itself: a detector's lines, an operation that is named, a number in its place, no loss at all."""

from __future__ import annotations

import re

from forensics.analyses.nan.detector import Named, detector_lines, named_operation
from forensics.analyses.nan.kind import hidden
from forensics.analyses.nan.onset import NanOnset, lost, nan_onset
from forensics.analyses.nan.scale import Collapse, ScaleLimits, collapse_of
from forensics.analyses.nan.series import Status
from forensics.case.trainers import trainers_by_source
from forensics.knowledge.metrics import telling
from forensics.knowledge.operations import operation_of
from forensics.rules.kit import (
    Findings,
    Onset,
    Run,
    Struct,
    at_step,
    event_evidence,
    metric_evidence,
    proof,
    remark,
    rule,
    times,
)
from forensics.values import replace

#: Tables that say what the writer of a file hides.
_NEEDS = "metrics events sources"


class Consecutive(Struct, frozen=True):
    """How many detections say that the run could not go on; most detectors stop at ten."""

    least: int = 10


@remark("NAN007 nan-detector-lines", "events", confidence="high", cause="detector")
def detector_said(run: Run, cfg: Consecutive) -> Findings:
    """Count the detector's lines."""
    rows = detector_lines(run)
    if not rows:
        return
    first, last = rows[0], rows[-1]
    many = len(rows) >= cfg.least
    yield detector_said.finding(
        f"the run's NaN detector fired {times(len(rows))}, first at {at_step(first['step'])}",
        "often enough that such detectors stop the run by themselves" if many else "its own lines say so",
        proof(event_evidence(first), event_evidence(last) if len(rows) > 1 else None),
        numbers={"lines": len(rows)},
        next=("forensics nan-origin RUN",),
    )


#: How an operation is guarded that no row knows.
_GUARD = "clamp its input, or add an epsilon inside log, division and square root"


@rule("NAN011 nan-named-operation", "events metrics", about=named_operation, confidence="high", cause="named_operation")
def operation_named(run: Run, named: Named) -> Findings:
    """Find the first operation or module that a line names."""
    found = nan_onset(run)
    if found is None and not named.says_nan:
        return
    survived = found is not None and found.status is not Status.FAILED
    row = named.row
    onset = found.onset if found is not None and not survived else Onset(row["step"], row["t_ns"], row["rank"])
    kind = operation_of(named.name)
    yield operation_named.finding(
        f"the first non-finite value comes from {named.name}" + (f", called at {named.frame}" if named.frame else ""),
        "the run's own debug aid names it" + (f"; {kind.why}" if kind is not None else ""),
        proof(event_evidence(row), *(found.evidence() if found is not None else ())),
        onset,
        severity="info" if survived else "error",
        numbers={"name": named.name},
        next=(f"Guard {named.frame or named.name}: {kind.fix if kind is not None else _GUARD}",),
    )


@rule("NAN006 nan-filtered-by-writer", _NEEDS, about=lost, severity="error", cause="filtered_by_writer")
def filtered_by_writer(run: Run, found: NanOnset) -> Findings:
    """Find a NaN that only the gradient norm, or a row of zeros, betrays."""
    if not hidden(found):
        return
    source = str(found.first.row["source"])
    known = next((one for one in trainers_by_source(run).get(source, ()) if one.nan.prints == "number"), None)
    zeros = found.first.role == "zero"
    yield filtered_by_writer.finding(
        f"the logger hides a NaN loss from {at_step(found.step)} on",
        "the printed loss plunges to exactly zero and stays there"
        if zeros
        else "the printed loss is finite and ends on exactly zero while the gradients are not finite",
        found.evidence(),
        found.onset,
        confidence="medium" if zeros and known is None else "high",
        next=("forensics nan-origin RUN",),
    )


@rule("NAN009 nan-loss-column-gone", _NEEDS, about=lost, severity="error", cause="loss_column_gone", causal="symptom")
def loss_column_gone(run: Run, found: NanOnset) -> Findings:
    """Find a loss column that vanished."""
    gone = next((c for c in (found.first, *found.others) if c.role == "vanished"), None)
    if gone is None:
        return
    row, count = gone.row, gone.n_bad
    evidence = metric_evidence(row)
    known = next((one for one in trainers_by_source(run).get(str(row["source"]), ()) if one.nan.prints == "gap"), None)
    title = f"the loss column vanished at {at_step(evidence.step)} while iterations went on"
    if row["name"] == "loss":
        title = f"records of the training go on with an empty loss (null) from {at_step(evidence.step)} on"
    writer = f"{known.title if known else 'such a trainer'} prints it only when it is a positive number"
    if known is None and not re.search(telling("beside_loss"), row["name"]):
        writer = "JSON and tables have no NaN of their own, so many writers leave its place empty"
    yield loss_column_gone.finding(
        title,
        f"{count} records follow without a loss; {writer}",
        proof(evidence, *found.evidence()),
        found.onset,
        confidence="high" if found.others or known is not None else "medium",
        numbers={"records_without_loss": count},
        next=("forensics nan-origin RUN",),
    )


@rule(
    "NAN005 nan-loss-scale-collapse",
    "metrics events",
    about=collapse_of,
    config=ScaleLimits,
    cause="loss_scale_collapse",
)
def loss_scale_collapse(run: Run, collapse: Collapse) -> Findings:
    """Find where the loss scale began to fall for good."""
    bad = lost(run)
    first = collapse.evidence[0]
    onset = Onset(step=collapse.step, t_ns=first.t_ns, rank=first.rank)
    if bad is not None and bad.step is not None and (collapse.step is None or bad.step <= collapse.step):
        onset = bad.onset
    elif bad is not None:
        onset = replace(onset, step_lo=bad.clean_before(onset.step))
    consequence = bad is not None and onset is bad.onset and collapse.step != bad.step
    yield loss_scale_collapse.finding(
        f"{collapse.words}, from {at_step(collapse.step)} on",
        "after the first steps a healthy scale falls rarely and rises again; here no update gets through",
        collapse.evidence,
        onset,
        severity="warning" if consequence else "error",
        confidence="high" if bad is not None else "medium",
        numbers={} if collapse.share is None else {"skipped_share": collapse.share},
        next=("forensics nan-origin RUN",),
    )
