"""NAN001 nan-first-nonfinite: the first step at which training stopped being finite.

What it detects: the first NaN or infinity in the training loss, one of its parts or the gradient norm; a loss that
drops to exactly zero or whose column vanishes; a detector's own line where no number was printed. It names the last
clean record before it, so that the origin is a bracket and not a guess.

Why it matters: after a bad update every weight is NaN. All later steps are lost, and so is every checkpoint saved then.

How it decides: a series that stays bad to its end is an error at the first record from which at least half of the rest
is bad. A series that ends finite is information when at most `transient_share` of its records are bad (a warning where
the loss itself was printed so), a warning up to `fault_share`, and an error above. The earliest step over all ranks,
metrics and detectors wins. Where a restart in the same file, or a later file, trains on with finite losses, the
earlier loss is information only. Where the log, or what is known of the trainer, says that the update of a bad step was
skipped, the weights are those of the step before it, and the checkpoints after it can be used.

What else looks like this: timings before the first measurement, scores of an empty class, the spread of one sample, an
evaluation that was masked, a norm that is never computed. These are not watched, or are passed over because the loss
beside them stays finite. One update that the loss scaler skipped is a stumble, not a failure.

What to do next: run `forensics nan-origin` for the last clean checkpoint and the command to restart from it.

References: IEEE 754 (NaN propagates through every operation); PyTorch documentation of `torch.autograd.detect_anomaly`.

Example:
    ```metrics step,rank,name,value
    10,0,loss,2.31
    11,0,loss,nan
    12,0,loss,nan
    ```
    => NAN001 error confidence=high step=11 step_lo=10 onset_rank=0 cause=unknown bad_records=2 records=3
Example:
    ```metrics source,step,line,name,value
    run.log,20,4,loss,3.5
    run.log,30,5,loss,3.4
    run.log,40,6,loss,3.3
    ```
    ```events source,line,step,code,text
    run.log,7,44,mytrainer.nan,loss is not finite
    ```
    => NAN001 error confidence=high step=44 step_lo=40 cause=unknown bad_records=1 records=4
Example:
    ```metrics
    step: 10 20 30
    loss: 2.9 2.8 0.0
    grad_norm: 0.8 nan nan
    ```
    => NAN001 error confidence=high step=20 step_lo=10 cause=filtered_by_writer bad_records=2 records=3
Not this:
    ```metrics
    step: 10 20 30
    loss: 2.31 2.30 2.28
    bbox/APs: nan nan -
    aux_loss: nan nan -
    step_time_s: - - nan
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.nan.kind import kind_of, scale_fell_first
from forensics.analyses.nan.named import named_operation
from forensics.analyses.nan.onset import NanOnset, nan_onset
from forensics.analyses.nan.scale import collapse_of
from forensics.analyses.nan.series import Shares, Status
from forensics.analyses.nan.skips import skip_of
from forensics.analyses.nan.tokens import tokens_outside
from forensics.rules.kit import Causal, Confidence, Findings, Run, Severity, at_step, rule

_SEVERITY = {
    Status.FAILED: Severity.ERROR,
    Status.INTERMITTENT: Severity.WARNING,
    Status.TRANSIENT: Severity.INFO,
    Status.EARLIER: Severity.INFO,
}
_AFTER = {
    Status.FAILED: "it does not become finite again",
    Status.INTERMITTENT: "it alternates between finite and non-finite values",
    Status.TRANSIENT: "training went on finite",
    Status.EARLIER: "a later attempt trains on with finite losses",
}


@rule("nan", needs=("metrics", "facts", "events", "checkpoints"), config=Shares)
def first_nonfinite(run: Run) -> Findings:
    """Find the first non-finite step of the attempt that counts."""
    found = nan_onset(run)
    if found is None or (found.said and scale_fell_first(found, collapse_of(run))):
        return
    first, failed = found.first, found.status is Status.FAILED
    kind, skip = kind_of(run, found), None if failed else skip_of(run, found)
    after = _AFTER[found.status] + (f"; {skip.words}" if skip is not None else "")
    yield first_nonfinite.finding(
        f"{_what(found)} from {at_step(found.step)} on" if failed else f"{_what(found)} at {at_step(found.step)}",
        f"{after}; {kind.words}" if failed else after,
        (*found.evidence(), *((skip.line,) if skip is not None and skip.line is not None else ())),
        found.onset,
        severity=_severity(found, is_skipped=skip is not None),
        confidence=_confidence(found),
        culprits=() if first.row["rank"] is None or not _told_apart(found) else (first.row["rank"],),
        cause=kind.cause if failed else found.status.value if skip is None else "skipped_update",
        causal=_causal(run, found),
        numbers={"bad_records": first.n_bad, "records": first.n, "finite_losses_before": found.n_before},
        next=("forensics nan-origin RUN",),
    )


def _causal(run: Run, found: NanOnset) -> Causal:
    """A detector only says when, so that the operation which the same line names is nearer to the cause.

    So is a token id outside of the vocabulary in a batch up to the first bad step.
    """
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
    that does so again tells of data or numerics that come back.
    """
    printed = any(
        (c.role == "loss" and c.clean is not None) or (c.role == "detector" and (c.n_bad > 1 or not is_skipped))
        for c in (found.first, *found.others)
    )
    return Severity.WARNING if found.status is Status.TRANSIENT and printed else _SEVERITY[found.status]


def _what(found: NanOnset) -> str:
    match found.first.role:
        case "detector":
            return "a NaN detector fired"
        case "echo":
            return "sampling met NaN probabilities"
        case "zero":
            return "the loss is exactly zero"
        case "counter":
            return "the trainer counts NaN updates"
        case "vanished":
            return "the loss column is gone"
        case _:
            shown = {"+inf": "infinite", "-inf": "infinite"}.get(found.first.row["value_class"], "NaN")
            return f"{found.first.row['raw_name'] or found.metric} is {shown}"


def _confidence(found: NanOnset) -> Confidence:
    sure = found.first.n_bad >= 2 or found.first.role == "detector" or bool(found.others)
    return Confidence.HIGH if sure and found.first.role not in {"zero", "echo"} else Confidence.MEDIUM


def _told_apart(found: NanOnset) -> bool:
    """Whether several ranks log a loss and the first bad one is earlier than all others."""
    ranks = {c.row["rank"]: c.step for c in (found.first, *found.others) if c.step is not None}
    seen = found.rows["rank"].drop_nulls().n_unique()
    mine = found.first.row["rank"]
    return seen > 1 and found.step is not None and all(s > found.step for r, s in ranks.items() if r != mine)
