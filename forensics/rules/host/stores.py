"""Several files of a run that hold the same metric: how they fit together, and where they differ."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from forensics.case.joined.stores import Link, Match, Strand, stores_of
from forensics.case.processes.attempts import attempts
from forensics.case.series import metric_rows
from forensics.case.steps import step_of
from forensics.rules.kit import (
    Evidence,
    EvidenceRole,
    Finding,
    Findings,
    Onset,
    Row,
    Run,
    at_step,
    metric_evidence,
    number,
    remark,
    rule,
)


def row_of(run: Run, strand: Strand, seq: int) -> Row | None:
    """The metrics row of one record of a series; None when it is gone."""
    own = (
        (pl.col("source") == strand.source)
        & pl.col("raw_name").eq_missing(pl.lit(strand.raw_name))
        & (pl.col("name") == strand.name)
        & (pl.col("seq") == seq)
        & pl.col("attempt").eq_missing(pl.lit(strand.attempt, dtype=pl.Int32))
        & pl.col("rank").eq_missing(pl.lit(strand.rank, dtype=pl.Int32))
    )
    rows = metric_rows(run, pl.col("name") == strand.name).filter(own).head(1).collect()
    return rows.row(0, named=True) if rows.height else None


def relation(link: Link) -> str:
    """How the steps of two files fit together, as a formula with its usual reason."""
    factor, offset, a, b = link.line.factor, link.line.offset, link.a[0], link.b[0]
    if factor < 1:
        factor, offset, a, b = 1 / factor, -offset / factor, b, a
    words = f"step of {a} = {number(factor)} x step of {b} {'-' if offset < 0 else '+'} {number(abs(offset))}"
    return f"{words} ({_reason(link, factor, offset)}; {_how(link)})"


def _reason(link: Link, factor: float, offset: float) -> str:
    if not all(m.a.numbered and m.b.numbered for m in link.same):
        return "one of them prints no step, so its records are counted"
    if factor != 1:
        return "one counts log calls or micro-steps: a log interval or gradient accumulation"
    if not offset:
        return "the same steps"
    return "one counts from 0, the other from 1" if abs(offset) == 1 else "one began to count later"


def _how(link: Link) -> str:
    if link.line.clock_s is None:
        return "aligned by equal values"
    ahead = f", {number(link.line.clock_s / 3600)} h apart by their clocks" if link.line.clock_s else ""
    return f"aligned by wall time and equal values{ahead}"


#: So many relations are written out.
_SHOWN = 4


@remark("HST002 one-metric-many-stores", "metrics", confidence="high", cause="many_stores")
def one_metric_many_stores(run: Run) -> Findings:
    """Name the files that hold the same metrics, in one finding for the run."""
    found = stores_of(run)
    links = [link for link in found.links if link.a[0] != link.b[0]]
    if not links:
        return
    files = sorted({unit[0] for link in links for unit in (link.a, link.b)})
    evidence = [e for link in links[:_SHOWN] for e in _of_both(run, link)]
    names = sorted({m.a.name for link in links for m in link.same})
    more = f"; and {len(links) - _SHOWN} more pairs" if len(links) > _SHOWN else ""
    yield one_metric_many_stores.finding(
        f"{len(files)} files hold the same {', '.join(names[:3])}: one run, counted once",
        "; ".join(relation(link) for link in links[:_SHOWN]) + more,
        tuple(dict.fromkeys(evidence)),
        Onset(),
        numbers={
            "files": len(files),
            "series_left_out": found.left_out.height,
            "step_factor": links[0].line.factor,
            "step_offset": links[0].line.offset,
        },
        likely=("a trainer that reports to several places",),
        next=("no action needed; convert steps before you compare the files",),
    )


def _of_both(run: Run, link: Link) -> Iterator[Evidence]:
    match = max(link.same, key=lambda m: m.equal)
    for strand, seq in ((match.a, match.first[0]), (match.b, match.first[1])):
        if (row := row_of(run, strand, seq)) is not None:
            yield metric_evidence(row, EvidenceRole.RELATED)


_TITLES = {
    "hidden_in_one_store": "shows {name} = {value} where another file of the same run shows {other}",
    "stores_part": "and another file hold the same {name} up to a step, and other values from {step} on",
    "stores_differ": "and another file of the same run give different {name}, first at {step}",
}
_WATCHED = ("loss", "grad_norm")


@rule("HST001 stores-disagree", "metrics", causal="context")
def stores_disagree(run: Run) -> Findings:
    """Report each metric in which two stores differ, once for each way in which they do."""
    told: set[tuple[str, str]] = set()
    for link in stores_of(run).links:
        for match in link.same:
            for cause, clashes in _kinds(match):
                key = match.a.name, cause
                if key not in told and (finding := _finding(run, link, match, cause, clashes)) is not None:
                    told.add(key)
                    yield finding


def _kinds(match: Match) -> Iterator[tuple[str, pl.DataFrame]]:
    hidden, other = match.clashes.filter(~pl.col("finite")), match.clashes.filter("finite")
    if hidden.height:
        yield "hidden_in_one_store", hidden
    if other.height:
        yield "stores_part" if match.parted else "stores_differ", other


def _attempt_of(run: Run, row: Row) -> int:
    return attempts(run).of(row["source"], line=row["line"], byte=row["byte"], t_ns=row["t_ns"])


def _finding(run: Run, link: Link, match: Match, cause: str, clashes: pl.DataFrame) -> Finding | None:
    first = clashes.row(0, named=True)
    a, b = row_of(run, match.a, first["seq_a"]), row_of(run, match.b, first["seq_b"])
    if a is None or b is None or _attempt_of(run, a) != _attempt_of(run, b):
        return None  # a restart trains the steps since its checkpoint anew
    if a["value_class"] == "finite" and b["value_class"] != "finite":
        a, b = b, a
    step = step_of(a)
    hidden = not first["finite"]
    words = {"name": match.a.raw_name, "value": a["value"], "other": b["value"], "step": at_step(step)}
    return stores_disagree.finding(
        f"{a['source']} {_TITLES[cause].format(**words)}",
        f"{clashes.height} of {match.aligned} aligned records differ; {relation(link)}",
        (metric_evidence(a), metric_evidence(b, EvidenceRole.CONTRADICTS)),
        shape="nan" if hidden else "learning",
        severity="warning" if hidden and match.a.name in _WATCHED else "info",
        confidence="high" if hidden else "medium",
        cause=cause,
        numbers={"records": clashes.height, "aligned": match.aligned},
        likely=(
            "a writer that replaces or drops NaN",
            "two writers to one file, or a restart that wrote one of them anew",
            "a value that one store averages",
        ),
        next=("look both places up in their files, and mend the writer of the one that hides the value",),
    )
