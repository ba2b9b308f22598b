"""Compilation again and again, by the log and by a trace."""

from __future__ import annotations

import polars as pl

from forensics.analyses.pace.account import Gravity, paced
from forensics.analyses.pace.pauses import share_of_time
from forensics.analyses.traces.steps import compile_rows, compile_share
from forensics.case.errors.coded import events_telling
from forensics.knowledge.errors import telling
from forensics.rules.kit import Finding, Findings, Run, Struct, event_evidence, proof, remark, rule
from forensics.rules.slowdown._spans import longest, ms, on_rank, percent, ran


class Recompiles(Struct, frozen=True):
    """Thresholds of SLO009.

    `many` recompilations in one source are told; single slow steps that take `burst` of the time are a loss, and
    then `few` are told: a warm-up has two or three.
    """

    many: int = 8
    few: int = 4
    burst: float = 1 - 1 / Gravity().mild


@remark("SLO009 recompiles", "events metrics checkpoints progress spans", cause="recompiles")
def recompiles(run: Run, cfg: Recompiles) -> Findings:
    """Find the source that recompiled most; the limit that was hit counts before any number."""
    rows = events_telling(run, "recompiled", "recompile_limit", order=("source", "seq"))
    if rows.is_empty():
        return
    limit = rows.filter(pl.col("code").is_in(telling("recompile_limit")))
    if limit.height:
        yield _of_log(limit, rows.height, _share(run), cfg, gave_up=True)
        return
    for _, part in rows.group_by("source", maintain_order=True):
        if part.height >= cfg.many or (part.height >= cfg.few and _share(run) >= cfg.burst):
            yield _of_log(part, part.height, _share(run), cfg, gave_up=False)
            return


def recompiling(run: Run) -> bool:
    """Whether a log says that it recompiled often, and much time goes to slow steps: single ones, or as few as that.

    A compiler that gave up has recompiled often, whatever the log holds of it.
    """
    least = run.threshold(Recompiles)
    if events_telling(run, "recompile_limit").height and _share(run) >= least.burst:
        return True
    count = events_telling(run, "recompiled").height
    pauses = ((one.seconds, one.paused | one.periodic(one.pauses)) for one in (paces.steady for paces in paced(run)))
    slow = min(
        (int(flags.sum()) for seconds, flags in pauses if share_of_time(seconds, flags) >= least.burst), default=0
    )
    return count >= least.few and (_share(run) >= least.burst or 0 < slow <= 2 * count)


def _share(run: Run) -> float:
    """The share of the time that single slow steps take in the clock that has most of it."""
    return max((share_of_time(one.steady.seconds, one.steady.excess > 0) for one in paced(run)), default=0.0)


def _of_log(rows: pl.DataFrame, count: int, share: float, cfg: Recompiles, *, gave_up: bool) -> Finding:
    slow, told = share >= cfg.burst, f"{count} recompilations"
    if gave_up:
        told = "the compiler gave up on a function: it runs uncompiled from here on"
    return recompiles.finding(
        told + (f", and bursts of slow steps take {share:.0%} of the time" if slow else ""),
        "the log says so; each recompilation costs seconds to minutes, and the limit ends compilation for good",
        proof(*map(event_evidence, rows.head(3).iter_rows(named=True))),
        severity="warning" if slow else "info",
        causal="root" if slow else "context",
        confidence="high" if gave_up else "medium",
        numbers={"recompilations": count, "share": share} if slow else {"recompilations": count},
    )


class TracedRecompiles(Struct, frozen=True):
    """Thresholds of SLO018: number of steps with compilation, and its share of the steps' time."""

    steps: int = 2
    share: float = 0.05


@rule("SLO018 trace-recompiles", "spans", severity="warning", confidence="medium", cause="recompiles")
def trace_recompiles(run: Run, cfg: TracedRecompiles) -> Findings:
    """Find the trace that compiles most."""
    found = compile_share(run).filter(pl.col("steps") >= cfg.steps, pl.col("share") >= cfg.share)
    if found.is_empty():
        return
    row = found.sort(["share", "source"], descending=[True, False]).row(0, named=True)
    rows = compile_rows(run).filter((pl.col("source") == row["source"]) & pl.col("step").is_not_null())
    first = rows.sort("start_ns").row(0, named=True)
    yield trace_recompiles.finding(
        f"{row['steps']} traced steps compile, which takes {percent(row['share'])} of the steps' time{on_rank(row)}",
        f"{row['count']} rows of the compiler, {ms(row['time_ns'])} in {row['steps']} different steps",
        proof(ran(first), *map(ran, longest(rows, 2))),
        numbers={"share": row["share"], "steps": row["steps"], "compile_s": row["time_ns"] / 1e9},
    )
