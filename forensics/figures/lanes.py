"""The time line over all ranks: every dated piece of evidence, in order, one lane a rank."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.figure import Lanes, Moment
from forensics.figures._when import clock
from forensics.model import Evidence, Finding, Report, Severity
from forensics.store.run import Run

_MOST = 40
_NO_RANK = "no rank"


def lanes(_run: Run, report: Report) -> Iterator[Lanes]:
    """Give the time line where at least two pieces of evidence have a time."""
    strong = [f for f in report.findings if f.severity is not Severity.INFO]
    dated = {(e.t_ns, e.place): (f, e) for f in reversed(strong) for e in reversed(f.evidence) if e.t_ns is not None}
    rows = [dated[key] for key in sorted(dated, key=lambda k: (k[0] or 0, k[1]))]
    if len(rows) < 2:
        return
    start = rows[0][1].t_ns or 0
    moments = tuple(_moment(f, e, start) for f, e in rows[:_MOST])
    ranks = sorted({e.rank for _, e in rows[:_MOST] if e.rank is not None})
    names = [f"rank {r}" for r in ranks]
    if any(m.lane == _NO_RANK for m in moments):
        names.append(_NO_RANK)
    yield Lanes(
        key="time-line",
        title="Time line over ranks",
        caption=f"What the findings rest on, from {moments[0].when} to {moments[-1].when} (UTC), the first on the left.",
        moments=moments,
        lanes=tuple(names),
        note=f"the first {_MOST} of {len(rows)} moments" if len(rows) > _MOST else "",
    )


def _moment(finding: Finding, evidence: Evidence, start: int) -> Moment:
    t_ns = evidence.t_ns or 0
    return Moment(
        at_s=(t_ns - start) / 1e9,
        when=clock(t_ns),
        lane=f"rank {evidence.rank}" if evidence.rank is not None else _NO_RANK,
        text=f"{finding.rule} {finding.title}",
        place=evidence.place,
        primary=evidence is finding.evidence[0],
    )
