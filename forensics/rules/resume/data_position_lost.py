"""RSM005 resume-data-position-lost: a resumed run sees its first data again.

What it detects: an epoch or a count of consumed samples that begins anew at a restart while the step goes on.

Why it matters: early data is seen twice and late data never; the loss looks better than it is.

How it decides: the counter at the first record of the new life is less than half of what it was at that step before.
A count of tokens alone is a remark, for some trainers do not save that counter though they do restore the position. A
trainer that prints no such counter cannot be judged.

What else looks like this: a counter of the process, not of the run.

What to do next: save and load the state of the sampler or iterator; with a finite data set, skip what was consumed.

References: PyTorch documentation, stateful data loaders; Megatron-LM, consumed samples.

Example:
    ```metrics
    attempt: 0*12 1*6
    step: 0..11 10..15
    loss: 2.02 1.97 1.99 1.96 1.96 1.97 1.92 1.94 1.91 1.91 1.92 1.87 1.88..1.83/-0.01
    num_samples: 64..768/64 64..384/64
    ```
    => RSM005 warning confidence=high step=10 cause=data_position_lost before=640.0 after=64.00
Not this:
    ```metrics
    attempt: 0*12 1*6
    step: 0..11 10..15
    loss: 2.02 1.97 1.99 1.96 1.96 1.97 1.92 1.94 1.91 1.91 1.92 1.87 1.88..1.83/-0.01
    num_samples: 64..768/64 704..1024/64
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.analyses.resume.around import around
from forensics.case.processes.lives import Boundary, restarts, rows_of
from forensics.rules.kit import Evidence, EvidenceRole, Finding, Findings, Run, Severity, metric_evidence, proof, rule
from forensics.rules.resume._compare import loaded, onset

_COUNTERS = (("num_samples", Severity.WARNING), ("epoch", Severity.WARNING), ("num_tokens", Severity.INFO))


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of RSM005: the share of a counter below which it began anew, and the records that show it."""

    share: float = 0.5
    records: int = 3


@dataclass(frozen=True, slots=True)
class _Reset:
    name: str
    old: float
    new: float
    evidence: tuple[Evidence, ...]


@rule("learning", needs=("metrics", "checkpoints"), config=Config, cause="data_position_lost")
def data_position_lost(run: Run, cfg: Config) -> Findings:
    """Find the first restart whose data begins anew."""
    for boundary in restarts(run):
        if boundary.kind == "scratch":
            continue
        for name, severity in _COUNTERS:
            reset = _reset(run, boundary, name, cfg) or (_epochs(run, boundary, cfg) if name == "epoch" else None)
            if reset is not None:
                yield _finding(run, boundary, reset, severity)
                return


def _reset(run: Run, boundary: Boundary, name: str, cfg: Config) -> _Reset | None:
    seen = around(run, boundary, name)
    if seen is None or seen.before.height < cfg.records or seen.after.height < cfg.records:
        return None
    old, new = float(seen.before["value"][-1]), float(seen.after["value"][0])
    if old <= 0 or new < 0 or new >= cfg.share * old:
        return None
    first, last = seen.after.row(0, named=True), seen.before.row(-1, named=True)
    raw = str(first["raw_name"])
    return _Reset(raw, old, new, (metric_evidence(first), metric_evidence(last, EvidenceRole.RELATED)))


def _epochs(run: Run, boundary: Boundary, cfg: Config) -> _Reset | None:
    """The same of the epoch that stands beside the losses."""
    start = boundary.after.first
    old = rows_of(run, boundary.before, "loss").filter(pl.col("epoch").is_not_null() & (pl.col("at") < start))
    new = rows_of(run, boundary.after, "loss").filter(pl.col("epoch").is_not_null())
    if old.height < cfg.records or new.height < cfg.records:
        return None
    before, after = float(old["epoch"][-1]), float(new["epoch"][0])
    if before <= 0 or after < 0 or after >= cfg.share * before:
        return None
    rows = (new.row(0, named=True), old.row(-1, named=True))
    return _Reset("epoch", before, after, tuple(metric_evidence(r) for r in rows))


def _finding(run: Run, boundary: Boundary, reset: _Reset, severity: Severity) -> Finding:
    return data_position_lost.finding(
        f"{reset.name} begins anew at the restart of step {boundary.after.first}: {reset.old:g} → {reset.new:g}",
        "the step goes on while the counter of the data does not",
        proof(*reset.evidence, *loaded(run, boundary)),
        onset(boundary),
        severity=severity,
        confidence="high" if severity is Severity.WARNING else "low",
        numbers={"before": reset.old, "after": reset.new},
    )
