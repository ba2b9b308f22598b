"""Ranks that the program's own detector calls slow."""

from __future__ import annotations

from collections import Counter

from forensics.case.errors.coded import events_telling
from forensics.case.rank_spans import ranks_text
from forensics.knowledge.errors import by_id
from forensics.patterns import lazily
from forensics.rules.kit import Findings, Onset, Run, Struct, event_evidence, rule

#: Where a report names the ranks: `{StragglerId(rank=3, node='a')}` or `[76, 13, 45]`.
_RANKS = lazily(r"\brank=(\d{1,7})\b|[\[{,] ?(\d{1,7})(?=[,\]}])")


class Reports(Struct, frozen=True):
    """Thresholds of SLO044: so many reports of a rank, and that share of all reports.

    Of a report that names the slowest rank in any case, that share is what it does less than the fastest.
    """

    reports: int = 3
    share: float = 0.5
    apart: float = 0.15


@rule("SLO044 reported-straggler", "events", severity="warning", cause="straggler")
def reported_straggler(run: Run, cfg: Reports) -> Findings:
    """Name the ranks that most reports name."""
    reports = events_telling(run, "straggler_report", order=("source", "line", "seq"))
    rows = [(row, _ranks_in(row["code"], row["text"] or "", cfg.apart)) for row in reports.iter_rows(named=True)]
    times = Counter(rank for _, ranks in rows for rank in ranks)
    least = max(cfg.reports, cfg.share * len(rows))
    slow = tuple(sorted(rank for rank, count in times.items() if count >= least))
    if not slow:
        return
    own = [row for row, ranks in rows if not ranks.isdisjoint(slow)]
    are = "is" if len(slow) == 1 else "are"
    yield reported_straggler.finding(
        f"{ranks_text(slow)} {are} called slow by the run's own detector, {max(times[rank] for rank in slow)} times",
        f"{len(own)} of {len(rows)} reports say so; all others wait for {'it' if len(slow) == 1 else 'them'}",
        (event_evidence(own[0]), event_evidence(own[-1])),
        Onset(step=own[0]["step"], t_ns=own[0]["t_ns"], rank=slow[0] if len(slow) == 1 else None),
        confidence="medium",
        culprits=slow,
        numbers={"reports": len(own)},
        next=("forensics kernels TRACE",),
    )


def _ranks_in(code: str, text: str, apart: float) -> frozenset[int]:
    """The ranks that one report names, or the slowest one where it is so far from the fastest."""
    found = by_id()[code].compiled.search(text)
    named = {} if found is None else found.groupdict()
    if "high" in named:
        slow = float(named["low"]) <= (1 - apart) * float(named["high"])
        return frozenset({int(named["rank"])} if slow else ())
    return frozenset(int(one or other) for one, other in _RANKS.findall(text))
