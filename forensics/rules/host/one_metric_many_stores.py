"""HST002 one-metric-many-stores: several files of the run hold the same metrics, and each is counted once.

What it detects: a log, an event file, a W&B run, a trainer state or a table to which one process wrote the same
numbers; and how their steps fit together: step of one = factor x step of the other + offset.

Why it matters: curves, counts and averages over all files together are wrong; and a step named in one file is another
number in the next.

How it decides: a measured metric (loss, gradient norm, reward) has at least five different values that are equal in
both files, to the digits that the coarser one prints and to float32, at nine of ten aligned records. Steps are aligned
by the factor and the offset on which most equal values lie. Where both files print times, they must be those of
the same minute; a log may be whole quarters of an hour off, as it prints local time. Files of two ranks, two
processes, two W&B runs or two folders of one layout are never one. A file is left out when nearly every record of
each metric that rules judge has its partner in a kept one, and no NaN stands in it alone.

What else looks like this: two runs with one seed whose files print no time; a copy of a log.

What to do next: nothing; use the relation of the steps when you compare the files by hand.

References: none; the values themselves are the proof.

Example:
    ```metrics
    source: train.log*6 run-a1.wandb*6
    seq: (0..5)*2
    step: 10..60/10 0..5
    raw_name: loss*6 train/loss*6
    loss: 4.9312 4.6125 4.4017 4.2544 4.1361 4.0283 4.93118 4.612531 4.401688 4.254427 4.136094 4.028341
    ```
    => HST002 info confidence=high cause=many_stores causal=context step_factor=10.00 step_offset=10.00
Not this: two ranks that print one averaged loss
    ```metrics
    source: rank0.log*6 rank1.log*6
    seq: (0..5)*2
    rank: 0*6 1*6
    step: (10..60/10)*2
    loss: (4.9312 4.6125 4.4017 4.2544 4.1361 4.0283)*2
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator

from forensics.case.evidence import metric_evidence
from forensics.case.joined.stores import Link, stores_of
from forensics.model import Causal, Confidence, Evidence, EvidenceRole, Finding, Severity, Shape
from forensics.registry import rule
from forensics.rules.host._stores import relation, row_of
from forensics.store.run import Run

#: So many relations are written out.
_SHOWN = 4


@rule(shape=Shape.LEARNING, needs=("metrics",))
def one_metric_many_stores(run: Run) -> Iterator[Finding]:
    """Name the files that hold the same metrics, in one finding for the run."""
    found = stores_of(run)
    links = [link for link in found.links if link.a[0] != link.b[0]]
    if not links:
        return
    files = sorted({unit[0] for link in links for unit in (link.a, link.b)})
    evidence = [e for link in links[:_SHOWN] for e in _evidence(run, link)]
    names = sorted({m.a.name for link in links for m in link.same})
    more = f"; and {len(links) - _SHOWN} more pairs" if len(links) > _SHOWN else ""
    yield one_metric_many_stores.finding(
        severity=Severity.INFO,
        confidence=Confidence.HIGH,
        title=f"{len(files)} files hold the same {', '.join(names[:3])}: one run, counted once",
        because="; ".join(relation(link) for link in links[:_SHOWN]) + more,
        evidence=tuple(dict.fromkeys(evidence)),
        cause="many_stores",
        causal=Causal.CONTEXT,
        numbers={
            "files": len(files),
            "series_left_out": found.left_out.height,
            "step_factor": links[0].line.factor,
            "step_offset": links[0].line.offset,
        },
        likely=("a trainer that reports to several places",),
        next=("no action needed; convert steps before you compare the files",),
    )


def _evidence(run: Run, link: Link) -> Iterator[Evidence]:
    match = max(link.same, key=lambda m: m.equal)
    for strand, seq in ((match.a, match.first[0]), (match.b, match.first[1])):
        if (row := row_of(run, strand, seq)) is not None:
            yield metric_evidence(row, EvidenceRole.RELATED)
