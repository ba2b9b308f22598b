"""The first step that was not finite."""

from __future__ import annotations

import re

import polars as pl

from forensics.analyses.nan.detector import named_operation
from forensics.analyses.nan.kind import Kind, kind_of, scale_fell_first
from forensics.analyses.nan.odd_rank import odd_rank
from forensics.analyses.nan.onset import NanOnset, nan_onset
from forensics.analyses.nan.origin import skip_of
from forensics.analyses.nan.scale import collapse_of
from forensics.analyses.nan.series import Shares, Status
from forensics.analyses.nan.tokens import tokens_outside
from forensics.knowledge.causes import is_kind
from forensics.knowledge.errors import row_of, telling
from forensics.rules.kit import Causal, Confidence, Findings, Run, Severity, at_step, rule
from forensics.values import replace

_SEVERITY = {
    Status.FAILED: Severity.ERROR,
    Status.INTERMITTENT: Severity.WARNING,
    Status.TRANSIENT: Severity.INFO,
    Status.EARLIER: Severity.INFO,
}
_AFTER = {
    Status.FAILED: "it does not become finite again",
    Status.INTERMITTENT: "it alternates between finite and non-finite values",
    Status.TRANSIENT: "the values after it are finite again",
    Status.EARLIER: "a later attempt trains on with finite losses",
}


@rule("NAN001 nan-first-nonfinite", "metrics facts events checkpoints", about=nan_onset, config=Shares)
def first_nonfinite(run: Run, found: NanOnset) -> Findings:
    """Find the first non-finite step of the attempt that counts."""
    collapse = collapse_of(run)
    fell_first = scale_fell_first(found, collapse)
    if found.said and fell_first:
        return
    first, failed = found.first, found.status is Status.FAILED
    kind, skip = kind_of(run), None if failed else skip_of(run, found)
    # the loss scale may have fallen for good before the first bad number was printed
    odd = odd_rank(run, found.step) if failed and found.step is not None and not _is_of_one(found) else None
    named = first.row["rank"] if _is_of_one(found) else odd
    fell = collapse.step if collapse is not None and failed and fell_first else None
    ends = Status.INTERMITTENT if failed and first.n_after else found.status
    after = _AFTER[ends] + (f"; {skip.words}" if skip is not None else "")
    yield first_nonfinite.finding(
        f"{_what(found)} from {_where(run, found)} on" if failed else f"{_what(found)} at {_where(run, found)}",
        f"{after}{_stopped(run, found)}; {kind.words}" if failed else after,
        (*found.evidence(), *((skip.line,) if skip is not None and skip.line is not None else ())),
        found.onset if fell is None else replace(found.onset, step=fell, step_lo=found.clean_before(fell)),
        severity=_severity(found, is_skipped=skip is not None),
        confidence=_confidence(found),
        culprits=(named,) if named is not None else (),
        cause=_cause(found, kind) if failed else found.status.value if skip is None else "skipped_update",
        causal=_causal(run, found),
        numbers={"bad_records": first.n_bad, "records": first.n, "finite_losses_before": found.n_before},
        next=("forensics nan-origin RUN",),
    )


def _where(run: Run, found: NanOnset) -> str:
    """The step, else the epoch of the record."""
    if found.step is not None or found.said:
        return at_step(found.step)
    row = found.first.row
    same = (pl.col("source") == row["source"]) & (pl.col("seq") == row["seq"])
    return at_step(None, run.scan("metrics").filter(same).select(pl.col("epoch").max()).collect().item())


def _cause(found: NanOnset, kind: Kind) -> str:
    """The kind of origin, or what the program's own line names where nothing that was logged tells one."""
    row = found.first.row
    said = row_of(row["code"] or "", row["text"] or "") if found.said and kind.name == "unknown" else None
    named = said is not None and said.shape == "nan" and not is_kind(said.cause, "general")
    return said.cause if said is not None and named else kind.cause


def _stopped(run: Run, found: NanOnset) -> str:
    """That the run stopped itself, where its own line says that it did."""
    said = pl.col("code").is_in(telling("stopped_for_nan"))
    if found.first.role != "detector" or run.scan("events").filter(said).head(1).collect().is_empty():
        return ""
    return ", and the run stopped itself after too many such steps in a row"


def _causal(run: Run, found: NanOnset) -> Causal:
    """A detector only says when, so that the operation which the same line names is nearer to the cause."""
    if found.status is not Status.FAILED:
        return Causal.CONTEXT
    outside = tokens_outside(run)
    if outside is not None and (outside.step or 0) <= (found.step if found.step is not None else 0):
        return Causal.SYMPTOM
    named = named_operation(run) if found.said else None
    same = named is not None and named.row["source"] == found.first.row["source"]
    return Causal.SYMPTOM if same else Causal.ROOT


def _severity(found: NanOnset, *, is_skipped: bool) -> Severity:
    """Of a loss that was printed as no number, or that a detector met and nobody skipped, even a stumble warns.

    One in the very first record is the mean of no step yet. A guard that leaves out one update does what it is for; one
    that does so again shows data or numerics that come back. The only series of a run may be no objective.
    """
    if found.first.role == "alone":
        return Severity.WARNING
    printed = any(
        (c.role == "loss" and c.clean is not None) or (c.role == "detector" and (c.n_bad > 1 or not is_skipped))
        for c in (found.first, *found.others)
    )
    return Severity.WARNING if found.status is Status.TRANSIENT and printed else _SEVERITY[found.status]


def _what(found: NanOnset) -> str:
    match found.first.role:
        case "detector" | "echo" as role:
            said = row_of(found.first.row["code"] or "", found.first.row["text"] or "")
            unnamed = "a NaN detector fired" if role == "detector" else "the program says that a number is not finite"
            return said.words if said is not None and said.words else unnamed
        case "zero":
            return "the loss is exactly zero"
        case "counter":
            return "the trainer counts NaN updates"
        case "vanished":
            return "the loss column is gone" if found.first.row["name"] != "loss" else "the loss is empty (null)"
        case _:
            shown = {"+inf": "infinite", "-inf": "infinite"}.get(found.first.row["value_class"], "NaN")
            return f"{found.first.row['raw_name'] or found.metric} is {shown}"


def _confidence(found: NanOnset) -> Confidence:
    sure = found.first.n_bad >= 2 or found.first.role == "detector" or bool(found.others)
    return Confidence.HIGH if sure and found.first.role not in {"zero", "echo", "alone"} else Confidence.MEDIUM


def _is_of_one(found: NanOnset) -> bool:
    return _told_apart(found) or _met_alone(found)


def _met_alone(found: NanOnset) -> bool:
    """Whether one rank's detector alone fired, and not that of who logs the loss: a loss of all ranks is met by all.

    Where nothing tells who logs it, the detector's own words name the rank.
    """
    detected = {c.row["rank"] for c in (found.first, *found.others) if c.role == "detector"}
    logging = set(found.rows["rank"].drop_nulls().unique().to_list())
    if found.first.role != "detector" or len(detected) != 1 or detected & logging:
        return False
    said = re.search(rf"\brank {found.first.row['rank']}\b", found.first.row["text"] or "", re.IGNORECASE)
    return bool(logging) or said is not None


def _told_apart(found: NanOnset) -> bool:
    """Whether several ranks log a loss and the first bad one is earlier than all others."""
    ranks = {c.row["rank"]: c.step for c in (found.first, *found.others) if c.step is not None}
    seen = found.rows["rank"].drop_nulls().n_unique()
    mine = found.first.row["rank"]
    return seen > 1 and found.step is not None and all(s > found.step for r, s in ranks.items() if r != mine)
