"""Counters of steps and data that begin anew after a resume."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import floor, isclose

import polars as pl

from forensics.analyses.resume.around import Around, around
from forensics.analyses.resume.first_data import Alike, first_data_again
from forensics.analyses.resume.levels import levels
from forensics.case.folds import restarts
from forensics.case.processes.lives import Boundary, rows_of
from forensics.declared import Fields
from forensics.rules.kit import Confidence, Finding, Findings, Run, Struct, proof, rule
from forensics.rules.resume._compare import begun, evidence_of, loaded, onset

_STEP_LOST_COUNTERS = ("num_samples", "num_tokens", "epoch")


class StepLost(Struct, frozen=True):
    """Thresholds of RSM004: shares of a counter's last value that it goes on from, and records whose level counts.

    The share is low because a restart goes back to its checkpoint; a counter that begins anew is near its first value.
    A life of fewer than `least_records` has no level; of a short one a quarter counts instead of `records`. The loss
    goes on where it is back by less than `near` of the way to its first level.
    """

    least: float = 0.3
    most: float = 1.5
    records: int = 5
    least_records: int = 8
    errors: float = 6.0
    near: float = 0.2


@rule("RSM004 resume-step-lost", "metrics checkpoints", severity="warning")
def step_lost(run: Run, cfg: StepLost) -> Findings:
    """Find the first restart that counts anew what went on."""
    for boundary in restarts(run):
        if boundary.kind != "scratch":
            continue
        found = _counter(run, boundary, cfg) or _level(run, boundary, cfg)
        if found is not None:
            yield found
            return


def _counter(run: Run, boundary: Boundary, cfg: StepLost) -> Finding | None:
    for name in _STEP_LOST_COUNTERS:
        seen = around(run, boundary, name)
        if seen is None:
            continue
        whole = pl.concat([seen.before["value"], seen.replaced["value"]])
        old, new = float(whole[-1]), float(seen.after["value"][0])
        if old > 2 * whole[0] and max(cfg.least * old, 2 * whole[0]) <= new <= cfg.most * old:
            because = f"{seen.after['raw_name'][0]} goes on from {old:g} to {new:g}"
            return _step_lost_finding(run, boundary, seen, because, Confidence.HIGH)
    return None


def _level(run: Run, boundary: Boundary, cfg: StepLost) -> Finding | None:
    start = begun(run, boundary)
    seen = around(run, boundary, "loss") if start is not None and start.quote else None
    if start is None or seen is None:
        return None
    found = levels(seen, records=cfg.records, errors=cfg.errors)
    if found is None or seen.before.height + seen.replaced.height < cfg.least_records:
        return None
    if not found.is_clear or abs(found.back) > cfg.near:
        return None
    said = f", and step {start.step} was loaded" if start.step else ", and a new process began"
    sure = Confidence.MEDIUM if start.resumed else Confidence.LOW
    because = f"the loss goes on at {found.new:.4g} after {found.last:.4g}{said}"
    return _step_lost_finding(run, boundary, seen, because, sure)


def _step_lost_finding(run: Run, boundary: Boundary, seen: Around, because: str, confidence: Confidence) -> Finding:
    return step_lost.finding(
        f"the step counts from {boundary.after.first} again after step {boundary.before.last}",
        because,
        evidence_of(run, seen, boundary),
        onset(boundary),
        confidence=confidence,
        cause="step_lost" if confidence is Confidence.HIGH else "steps_count_anew",
        numbers={"last_step": boundary.before.last, "first_step": boundary.after.first},
    )


#: Counters of the data, and how sure each is: tokens are also counted from the start of a process, and batches of an
#: epoch may be counted anew behind those that were skipped.
_DATA_POSITION_LOST_COUNTERS: Mapping[str, Fields] = {
    "num_samples": {"severity": "warning", "confidence": "high"},
    "epoch": {"severity": "warning", "confidence": "high"},
    "batch": {"severity": "warning", "confidence": "medium"},
    "num_tokens": {"severity": "info", "confidence": "low"},
}


class DataPositionLost(Struct, frozen=True):
    """Thresholds of RSM005: the share of a counter below which it began anew, and the records that show it.

    A loss whose level, of `level_records` and by `errors` of them, is `back` of the way to its first one began anew as
    a whole, which RSM002 tells.
    """

    share: float = 0.5
    records: int = 3
    level_records: int = 5
    errors: float = 6.0
    back: float = 0.5


@rule("RSM005 resume-data-position-lost", "metrics checkpoints", cause="data_position_lost")
def data_position_lost(run: Run, cfg: DataPositionLost) -> Findings:
    """Find the first restart whose data begins anew."""
    for boundary in restarts(run):
        if boundary.kind == "scratch":
            continue
        for name, sure in _DATA_POSITION_LOST_COUNTERS.items():
            for old, new, counted in _counts(run, boundary, name):
                first, last = new.row(0, named=True), old.row(-1, named=True)
                before, after = float(last[counted]), float(first[counted])
                if min(old.height, new.height) < cfg.records or not 0 <= after < cfg.share * before:
                    continue
                yield data_position_lost.finding(
                    f"{first['raw_name'] if counted == 'value' else counted} begins anew at the restart of step"
                    f" {boundary.after.first}: {before:g} → {after:g}",
                    "the step goes on while the counter of the data does not",
                    proof(first, last, *loaded(run, boundary)),
                    onset(boundary),
                    **{**sure, "numbers": {"before": before, "after": after}},
                )
                return
        if (found := _by_the_loss(run, boundary, cfg)) is not None:
            yield found
            return


def _by_the_loss(run: Run, boundary: Boundary, cfg: DataPositionLost) -> Finding | None:
    """The same of a loss that goes up and down as it did in the run's first records, where no epoch begins."""
    first, seen = boundary.before, around(run, boundary, "loss")
    if seen is None or first.first > 2 * first.every or not isclose(first.every, boundary.after.every, rel_tol=0.01):
        return None
    old, new = pl.concat([seen.before, seen.replaced]), seen.after
    alike = first_data_again(old["value"].to_numpy(), new["value"].to_numpy(), run.threshold(Alike))
    if not alike or _begins_an_epoch(seen) or _begins_anew(seen, cfg):
        return None
    return data_position_lost.finding(
        f"the loss goes up and down from step {boundary.after.first} on as it did from step {first.first} on:"
        " the run sees its first data again",
        f"its ups and downs correlate with those of the first records by {alike:.0%}, and with no later ones",
        proof(new.row(0, named=True), old.row(0, named=True), *loaded(run, boundary)),
        onset(boundary),
        severity="warning",
        confidence="medium",
        numbers={"correlation": alike, "records": new.height},
    )


def _begins_anew(seen: Around, cfg: DataPositionLost) -> bool:
    """Whether the loss itself is back where the run began."""
    found = levels(seen, records=cfg.level_records, errors=cfg.errors)
    return found is not None and found.is_clear and found.back > cfg.back


def _begins_an_epoch(seen: Around) -> bool:
    """Whether the epochs that the losses name put the restart between two of them."""
    last, new = (pl.concat([seen.before, seen.replaced])["epoch"].drop_nulls(), seen.after["epoch"].drop_nulls())
    return bool(last.len() and new.len() and floor(new[0]) > floor(last[-1]))


def _in_one_epoch(seen: Around) -> bool:
    """Whether the records on both sides of a restart name the same epoch, as batches begin anew with each."""
    last, new = seen.before["epoch"][-1], seen.after["epoch"][0]
    return last is not None and new is not None and floor(last) == floor(new)


def _counts(run: Run, boundary: Boundary, name: str) -> Iterator[tuple[pl.DataFrame, pl.DataFrame, str]]:
    """Rows before and after a restart that count, and their column: of a metric, or the epoch beside the losses."""
    seen = around(run, boundary, name)
    if seen is not None and seen.before.height and seen.after.height and (name != "batch" or _in_one_epoch(seen)):
        yield seen.before, seen.after, "value"
    if name == "epoch":
        old, new = (rows_of(run, one, "loss").drop_nulls("epoch") for one in (boundary.before, boundary.after))
        old = old.filter(pl.col("at") < boundary.after.first)
        if old.height and new.height:
            yield old, new, "epoch"
