"""Why the device of a trace is idle: the data loader, waits of the host, late launches, or nothing of these."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from forensics.analyses.traces.breakdown import by_rank
from forensics.analyses.traces.gaps import HOST, LOADER, SYNC, idle_causes, idle_gaps
from forensics.analyses.traces.gpu import gpu_rows
from forensics.analyses.traces.loader import loader_rows, loader_share
from forensics.analyses.traces.steps import step_at, steps
from forensics.analyses.traces.syncs import sync_calls
from forensics.rules.kit import Findings, Onset, Row, Run, Struct, proof, rule, times
from forensics.rules.slowdown._spans import longest, mostly, ms, on_rank, percent, quoted, span_evidence
from forensics.rules.slowdown.traces.busy import trace_exposed_communication
from forensics.rules.slowdown.traces.host import trace_host_copies, trace_host_work


class Starvation(Struct, frozen=True):
    """Thresholds of SLO010: shares of the device's time and, without a device, of the steps; fewest calls."""

    idle_share: float = 0.10
    step_share: float = 0.10
    calls: int = 1


@rule("SLO010 trace-data-starvation", "spans", severity="warning", cause="dataloader")
def trace_data_starvation(run: Run, cfg: Starvation) -> Findings:
    """Find the trace in which the loader keeps the device idle most."""
    shares = loader_share(run)
    if shares.is_empty():
        return
    idle = idle_causes(run).filter(pl.col("cause") == LOADER).select("source", idle_ns="time_ns")
    spans = by_rank(run).select("source", "span_ns")
    rows = shares.join(idle, on="source", how="left").join(spans, on="source", how="left")
    exposed = pl.col("idle_ns").fill_null(0) / pl.col("span_ns")
    judged = rows.with_columns(
        lost=pl.when(pl.col("span_ns").is_not_null()).then(exposed).otherwise(pl.col("share")),
        limit=pl.when(pl.col("span_ns").is_not_null()).then(cfg.idle_share).otherwise(cfg.step_share),
    )
    found = judged.filter(pl.col("calls") >= cfg.calls, pl.col("lost") >= pl.col("limit"))
    if found.is_empty():
        return
    row = found.sort(["lost", "source"], descending=[True, False]).row(0, named=True)
    own = pl.col("source") == row["source"]
    calls = loader_rows(run).filter(own).with_columns(dur_ns=pl.col("end_ns") - pl.col("start_ns"))
    calls = calls.with_columns(step_at(steps(run), calls["source"], calls["start_ns"]))
    gaps = idle_gaps(run).filter(own & (pl.col("cause") == LOADER))
    first, *more = longest(calls)
    what = "the devices are idle" if row["span_ns"] is not None else "steps pass"
    how = " (num_workers=0: batches are made in the training process)" if row["in_process"] else ""
    yield trace_data_starvation.finding(
        f"{what} {percent(row['lost'])} of the traced time while the loop waits for its data loader{on_rank(row)}{how}",
        f"{row['calls']} calls of the loader took {ms(row['wait_ns'])}"
        + ("" if row["share"] is None else f", {percent(row['share'])} of the steps")
        + (f"; seen in {found.height} of {judged.height} traces" if judged.height > 1 else ""),
        proof(
            span_evidence(first, f"{quoted(first['name'])} took {ms(first['dur_ns'])}"),
            *(span_evidence(r, f"took {ms(r['dur_ns'])}") for r in more),
            *(span_evidence(g, f"ends a gap of {ms(g['dur_ns'])}: {quoted(g['name'])}") for g in longest(gaps, 2)),
        ),
        confidence="high" if gaps.height > 1 else "medium",
        numbers={"lost_share": row["lost"], "wait_s": row["wait_ns"] / 1e9},
    )


class Syncs(Struct, frozen=True):
    """Thresholds of SLO011: share of idle time after such calls, calls a step, share of time in them."""

    idle_share: float = 0.05
    calls: float = 5.0
    wait_share: float = 0.05


@rule("SLO011 trace-host-syncs", "spans", confidence="medium", cause="host_sync")
def trace_host_syncs(run: Run, cfg: Syncs) -> Findings:
    """Find the trace whose host waits for the device most."""
    calls = sync_calls(run).filter(pl.col("waits"))
    if calls.is_empty():
        return
    marks = steps(run).group_by("source").agg(steps=pl.len())
    idle = idle_causes(run).filter(pl.col("cause") == SYNC).select("source", idle_ns="time_ns")
    rows = (
        by_rank(run)
        .select("source", "rank", "span_ns")
        .join(calls.group_by("source").agg(calls=pl.len(), wait_ns=pl.col("dur_ns").sum()), on="source")
        .join(marks, on="source", how="left")
        .join(idle, on="source", how="left")
        .with_columns(
            lost=pl.col("idle_ns").fill_null(0) / pl.col("span_ns"),
            waits=pl.col("wait_ns") / pl.col("span_ns"),
            each=pl.col("calls") / pl.col("steps"),
        )
    )
    bad = pl.col("lost") >= cfg.idle_share
    many = (pl.col("each") >= cfg.calls).fill_null(value=False) | (pl.col("waits") >= cfg.wait_share)
    found = rows.filter(bad | many).sort(["lost", "waits", "source"], descending=[True, True, False])
    if found.is_empty():
        return
    row = found.row(0, named=True)
    calls = calls.filter(pl.col("source") == row["source"])
    by_site = calls.group_by(site=pl.coalesce("frame", "op", "name")).agg(n=pl.len(), ns=pl.col("dur_ns").sum())
    sites = by_site.sort(["ns", "site"], descending=[True, False]).head(3)
    named = "; ".join(f"{quoted(site)} {times(n)}, {ms(ns)}" for site, n, ns in sites.iter_rows())
    each = "" if row["each"] is None else f", {row['each']:.1f} a step"
    yield trace_host_syncs.finding(
        f"the host waits for the device {times(row['calls'])} within the trace{each}; the device is idle "
        f"{percent(row['lost'])} of the time after such waits{on_rank(row)}",
        f"the waits take {ms(row['wait_ns'])}; called from {named}",
        proof(*(span_evidence(call, _quote(call)) for call in longest(calls))),
        severity="warning" if row["lost"] >= cfg.idle_share else "info",
        numbers={"idle_share": row["lost"], "calls": row["calls"], "wait_s": row["wait_ns"] / 1e9},
    )


def _quote(row: Row) -> str:
    where = [f"in {quoted(row[key])}" for key in ("op", "frame") if row[key]]
    copy = [f"for {quoted(row['copy'])}"] if row["copy"] else []
    return " ".join([f"{row['name']} waited {ms(row['dur_ns'])}", *copy, *where])


_MOST_OF_IDLE = 0.5


class LaunchBound(Struct, frozen=True):
    """Thresholds of SLO012: shares of the time and of the kernels; microseconds of a short kernel; fewest of each.

    Below `many` kernels the confidence is low.
    """

    idle_share: float = 0.15
    short_share: float = 0.5
    short_us: float = 10.0
    kernels: int = 10
    gaps: int = 10
    many: int = 100


@rule("SLO012 trace-launch-bound", "spans", severity="warning", cause="launch_bound")
def trace_launch_bound(run: Run, cfg: LaunchBound) -> Findings:
    """Find the trace in which late launches cost most."""
    host = idle_causes(run).filter(pl.col("cause") == HOST).select("source", "gaps", host_ns="time_ns")
    kernels = gpu_rows(run).filter(pl.col("category") == "kernel")
    time, few = pl.col("dur_ns"), (pl.col("dur_ns") < cfg.short_us * 1000).mean()
    short = kernels.group_by("source").agg(kernels=pl.len(), short=few, median_ns=time.median())
    rows = by_rank(run).join(host, on="source").join(short, on="source")
    rows = rows.with_columns(lost=pl.col("host_ns") / pl.col("span_ns"))
    found = rows.filter(
        (pl.col("lost") >= cfg.idle_share)
        & (pl.col("host_ns") >= _MOST_OF_IDLE * pl.col("idle_ns"))
        & (pl.col("short") >= cfg.short_share)
        & (pl.col("kernels") >= cfg.kernels)
        & (pl.col("gaps") >= cfg.gaps)
    ).sort(["lost", "source"], descending=[True, False])
    if found.is_empty():
        return
    row = found.row(0, named=True)
    gaps = idle_gaps(run).filter((pl.col("source") == row["source"]) & (pl.col("cause") == HOST))
    first, *more = longest(gaps)
    yield trace_launch_bound.finding(
        f"the device waits for launches {percent(row['lost'])} of the traced time{on_rank(row)}; "
        f"{percent(row['short'])} of its {row['kernels']:,} kernels run below {cfg.short_us:g} µs",
        f"{row['gaps']:,} idle gaps ({ms(row['host_ns'])} in total) end with a kernel that was launched late; "
        f"the median kernel runs {row['median_ns'] / 1000:.1f} µs",
        proof(
            span_evidence(first, f"launched late, after {ms(first['dur_ns'])} without work: {quoted(first['name'])}"),
            *(span_evidence(r, f"after {ms(r['dur_ns'])} without work") for r in more),
        ),
        confidence="medium" if row["kernels"] >= cfg.many else "low",
        numbers={"lost_share": row["lost"], "short_share": row["short"], "kernels": row["kernels"]},
    )


_OF_ONE_CAUSE: tuple[Callable[[Run], Findings], ...] = (
    trace_data_starvation,
    trace_host_syncs,
    trace_launch_bound,
    trace_exposed_communication,
    trace_host_work,
    trace_host_copies,
)


class IdleDevice(Struct, frozen=True):
    """Thresholds of SLO034: shares of the traced time."""

    some: float = 0.15
    much: float = 0.25


@rule("SLO034 idle-device", "spans facts", confidence="medium", cause="idle_device")
def idle_device(run: Run, cfg: IdleDevice) -> Findings:
    """Find the trace with most idle time."""
    shares = by_rank(run).filter(pl.col("span_ns") > 0).with_columns(share=pl.col("idle_ns") / pl.col("span_ns"))
    worst = shares.filter(pl.col("share") >= cfg.some).sort(["share", "source"], descending=[True, False])
    if worst.is_empty() or any(True for named in _OF_ONE_CAUSE for _ in named(run)):
        return
    row = worst.row(0, named=True)
    gaps = idle_gaps(run).filter(pl.col("source") == row["source"])
    causes = idle_causes(run).filter(pl.col("source") == row["source"])
    first, *more = longest(gaps)
    at = step_at(steps(run), pl.Series([first["source"]]), pl.Series([first["start_ns"]], dtype=pl.Int64))[0]
    yield idle_device.finding(
        f"the device is idle for {percent(row['share'])} of the traced time{on_rank(row)}",
        f"{gaps.height:,} gaps, the longest {ms(first['dur_ns'])}; {mostly(causes['cause'][0])}",
        proof(
            span_evidence(first, f"{ms(first['dur_ns'])} without work before {quoted(first['name'])}"),
            *(span_evidence(r, f"{ms(r['dur_ns'])} without work") for r in more),
        ),
        Onset(step=at, t_ns=first["start_ns"], rank=first["rank"]),
        severity="warning" if row["share"] >= cfg.much else "info",
        numbers={"idle_share": row["share"], "gaps": gaps.height},
    )
