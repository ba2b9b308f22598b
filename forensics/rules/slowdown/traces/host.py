"""What the host of a trace does while its device computes nothing: its own work, and copies to and from the device."""

from __future__ import annotations

import polars as pl

from forensics.analyses.traces.breakdown import by_rank
from forensics.analyses.traces.gaps import OWN, idle_gaps
from forensics.analyses.traces.gpu import MEMORY, gpu_rows
from forensics.analyses.traces.intervals import covered, union_of
from forensics.analyses.traces.syncs import frames_at
from forensics.knowledge.vocabulary import words_for
from forensics.rules.kit import Findings, Onset, Run, Struct, proof, rule, times
from forensics.rules.slowdown._spans import longest, ms, on_rank, percent, quoted, ran, span_evidence


class HostWork(Struct, frozen=True):
    """Threshold of SLO040: the share of the traced time, as that of a data loader (SLO010)."""

    idle_share: float = 0.10


@rule("SLO040 trace-host-work", "spans", severity="warning", confidence="medium", cause="host_work")
def trace_host_work(run: Run, cfg: HostWork) -> Findings:
    """Find the trace whose device waits most for work of the program that launches nothing."""
    gaps = idle_gaps(run).filter(pl.col("cause") == OWN)
    lost = gaps.group_by("source").agg(lost_ns=pl.col("dur_ns").sum(), gaps=pl.len())
    rows = by_rank(run).join(lost, on="source").with_columns(share=pl.col("lost_ns") / pl.col("span_ns"))
    found = rows.filter(pl.col("share") >= cfg.idle_share).sort(["share", "source"], descending=[True, False])
    if found.is_empty():
        return
    row = found.row(0, named=True)
    own = gaps.filter(pl.col("source") == row["source"])
    middle = (pl.col("start_ns") + pl.min_horizontal("launch_ns", "end_ns")) // 2
    own = own.with_columns(frames_at(run, own.select("source", "thread", at_ns=middle)).alias("frame"))
    places = own.group_by("frame").agg(ns=pl.col("dur_ns").sum()).sort(["ns", "frame"], descending=[True, False])
    place = places["frame"][0]
    first, *more = longest(own)
    yield trace_host_work.finding(
        f"the device is idle {percent(row['share'])} of the traced time while the program works on the host"
        + (f" in {quoted(place)}" if place is not None else "")
        + on_rank(row),
        f"{times(row['gaps'])} the host launched nothing and awaited nothing for most of a gap"
        + (f"; {ms(places['ns'][0])} of {ms(row['lost_ns'])} in {quoted(place)}" if place is not None else ""),
        proof(
            span_evidence(first, f"{ms(first['dur_ns'])} without work before {quoted(first['name'])}"),
            *(span_evidence(r, f"{ms(r['dur_ns'])} without work") for r in more),
        ),
        Onset(step=first["step"], t_ns=first["start_ns"], rank=first["rank"]),
        numbers={"lost_share": row["share"], "gaps": row["gaps"]},
    )


class HostCopies(Struct, frozen=True):
    """Threshold of SLO039: the share of the traced time, as that of communication under which nothing computes."""

    share: float = 0.20


@rule("SLO039 trace-host-copies", "spans", severity="warning", confidence="medium", cause="host_copies")
def trace_host_copies(run: Run, cfg: HostCopies) -> Findings:
    """Find the trace with most time in copies between the host and its device under which nothing computes."""
    work = gpu_rows(run)
    copies = work.filter(
        (pl.col("category") == "gpu_memcpy") & pl.col("name").str.contains(words_for("copy_of_the_host"))
    )
    rows = by_rank(run).with_columns(lost_ns=pl.lit(0))
    for i, (source, span_ns) in enumerate(rows.select("source", "span_ns").iter_rows()):
        mine = union_of(copies.filter(pl.col("source") == source))
        other = union_of(work.filter((pl.col("source") == source) & (pl.col("kind") != MEMORY)))
        rows[i, "lost_ns"] = int(mine.totals(1)[0] - covered(other, mine.start, mine.end).sum()) if span_ns else 0
    shares = rows.filter(pl.col("span_ns") > 0).with_columns(share=pl.col("lost_ns") / pl.col("span_ns"))
    found = shares.filter(pl.col("share") >= cfg.share).sort(["share", "source"], descending=[True, False])
    if found.is_empty():
        return
    row = found.row(0, named=True)
    mine = copies.filter(pl.col("source") == row["source"])
    paged = mine.filter(pl.col("name").str.contains(words_for("copy_of_pageable_memory")))
    back = mine.filter(pl.col("name").str.contains(words_for("copy_to_the_host")))
    took_ns, paged_ns, back_ns = (int(part["dur_ns"].sum()) for part in (mine, paged, back))
    ways = ((back_ns, "to the host"), (paged_ns, "from or to memory that is not pinned"))
    first, *more = longest(mine)
    yield trace_host_copies.finding(
        f"copies between the host and the device take {percent(row['share'])} of the traced time, and nothing is"
        f" computed beside them{on_rank(row)}",
        f"{mine.height} copies take {ms(took_ns)}"
        + "".join(f", {percent(part / took_ns)} of it {way}" for part, way in ways if part),
        proof(ran(first), *(span_evidence(r, f"ran {ms(r['dur_ns'])}") for r in more)),
        Onset(step=first["step"], t_ns=first["start_ns"], rank=first["rank"]),
        cause="copies_to_host" if back_ns * 2 > took_ns else "host_copies",
        numbers={"lost_share": row["share"], "copies": mine.height},
    )
