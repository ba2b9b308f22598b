"""The time line over all ranks: every dated piece of evidence, in order, one lane a rank."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.figure import Lanes, Moment
from forensics.figures._ticks import clock
from forensics.figures.kind import FigureKind
from forensics.model import Evidence, Finding, Report, Severity
from forensics.store.run import Run

_MOST = 40
_EACH = 8
_QUOTE = 140
_NO_RANK, _NO_CLOCK = "no rank", "no time printed"


def lanes(_run: Run, report: Report) -> Iterator[Lanes]:
    """Give the time line where something has a time and at least two things happened.

    What the verdict rests on is always on it: first, where it has no time.
    """
    strong = [f for f in report.findings if f.severity is not Severity.INFO]
    cause = next((f for f in strong if _is_cause(f, report)), None)
    every = [(f, e) for f in strong for e in f.evidence[:_EACH]]
    dated = sorted(((f, e) for f, e in every if e.t_ns is not None), key=lambda row: (row[1].t_ns or 0, row[1].place))
    undated = [(f, e) for f, e in every if e.t_ns is None and e is f.evidence[0] and f.severity is Severity.ERROR]
    rows = _once([*(r for r in undated if r[0] is cause), *dated, *(r for r in undated if r[0] is not cause)])
    if len(rows) < 2 or not dated:
        return
    start = dated[0][1].t_ns or 0
    moments = tuple(_moment(f, e, start, cause) for f, e in rows[:_MOST])
    ranks = sorted({e.rank for _, e in rows[:_MOST] if e.rank is not None})
    names = [f"rank {r}" for r in ranks]
    if any(m.lane == _NO_RANK for m in moments):
        names.append(_NO_RANK)
    first, last = clock(start), clock(dated[-1][1].t_ns or 0)
    yield Lanes(
        key="time-line",
        title="Time line over ranks",
        caption=f"What the findings rest on, from {first} to {last} (UTC)."
        + (" Red marks the evidence of the verdict." if any(m.primary for m in moments) else "")
        + (" A ring is a moment without a printed time." if any(m.at_s is None for m in moments) else ""),
        moments=moments,
        lanes=tuple(names),
        note=f"the first {_MOST} of {len(rows)} moments" if len(rows) > _MOST else "",
    )


def _is_cause(finding: Finding, report: Report) -> bool:
    verdict = report.verdict
    same = (finding.shape, finding.cause, finding.onset.step) == (verdict.shape, verdict.cause, verdict.onset.step)
    return same and finding.severity is Severity.ERROR


def _once(rows: list[tuple[Finding, Evidence]]) -> list[tuple[Finding, Evidence]]:
    """Leave out what another finding says of the same place."""
    seen: dict[str, tuple[Finding, Evidence]] = {}
    for row in rows:
        seen.setdefault(row[1].place, row)
    return list(seen.values())


def _moment(finding: Finding, evidence: Evidence, start: int, cause: Finding | None) -> Moment:
    t_ns = evidence.t_ns
    return Moment(
        at_s=None if t_ns is None else (t_ns - start) / 1e9,
        when=_NO_CLOCK if t_ns is None else clock(t_ns),
        lane=f"rank {evidence.rank}" if evidence.rank is not None else _NO_RANK,
        text=f"{finding.rule} {_words(finding, evidence)}",
        place=evidence.place,
        primary=finding is cause and evidence is finding.evidence[0],
    )


def _words(finding: Finding, evidence: Evidence) -> str:
    """Say what is at the place: the claim itself at its first place, else the line or the number there."""
    if evidence is finding.evidence[0]:
        return finding.title
    said = evidence.quote.strip() or (f"{evidence.name} = {evidence.value}" if evidence.name else finding.title)
    return said if len(said) <= _QUOTE else said[: _QUOTE - 1] + "…"


FIGURES = FigureKind(10, lanes)
