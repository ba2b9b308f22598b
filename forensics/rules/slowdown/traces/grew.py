"""Shares of the device's time that a later profiling window has more of than the first one of its rank."""

from __future__ import annotations

from typing import Any

import polars as pl

from forensics.analyses.traces.gaps import idle_causes, idle_gaps
from forensics.analyses.traces.gpu import COMMUNICATION, MEMORY, gpu_rows
from forensics.analyses.traces.windows import is_other, window_pairs
from forensics.registry import Rule
from forensics.rules.kit import Evidence, Finding, Findings, Onset, Row, Run, Struct, proof, rule
from forensics.rules.slowdown._spans import longest, mostly, ms, percent, quoted, ran, span_evidence

#: The work whose share it is, in words, and which rows it is.
_WORK = {
    "comm_share": ("communication with nothing computed meanwhile", pl.col("kind") == COMMUNICATION),
    "memory_share": ("copies and sets of memory", pl.col("kind") == MEMORY),
    "other_share": (
        "kernels other than matrix products, attention, convolutions, communication and copies",
        is_other(),
    ),
}


def grown(rule: Rule, run: Run, share: str, bad: pl.Expr) -> Findings:
    """Say by how much `share` grew from the first window of a rank to its last, for the `bad` pair that grew most.

    The longest work of either window proves it.
    """
    if (pair := most_grown(run, share, bad)) is None:
        return
    what, which = _WORK[share]
    rows = gpu_rows(run).filter(which)
    late = longest(rows.filter(pl.col("source") == pair["source_last"]), 2)
    early = longest(rows.filter(pl.col("source") == pair["source_first"]), 1)
    before = (span_evidence(r, f"before: ran {ms(r['dur_ns'])}") for r in early)
    yield _finding(rule, pair, share, (what, ", the first and the last trace of this rank"), *map(ran, late), *before)


def _finding(rule: Rule, pair: Row, share: str, words: tuple[str, str], *shown: Evidence) -> Finding:
    before, after = pair[f"{share}_first"], pair[f"{share}_last"]
    when = "" if pair["step_lo_last"] is None else f" by step {pair['step_lo_last']}"
    return rule.finding(
        f"{words[0]} grew from {percent(before)} to {percent(after)} between two traces{when}",
        f"of {pair['source_first']} and {pair['source_last']}{words[1]}",
        proof(*shown),
        Onset(step=pair["step_lo_last"], rank=pair["rank"], step_lo=pair["step_hi_first"]),
        numbers={"before_share": before, "after_share": after},
    )


def rose(share: str, points: float, ratio: float) -> pl.Expr:
    """Whether a share grew by at least `points` and `ratio` times from the first window to the last."""
    before, after = pl.col(f"{share}_first"), pl.col(f"{share}_last")
    return (after - before >= points) & (after >= ratio * before)


def multiplied(each: str, ratio: float) -> pl.Expr:
    """Whether there are at least `ratio` times as many of a kind a step."""
    return (pl.col(f"{each}_last") >= ratio * pl.col(f"{each}_first")).fill_null(value=False)


def most_grown(run: Run, share: str, bad: pl.Expr) -> dict[str, Any] | None:
    """The pair of windows that is `bad` and whose `share` grew most, if any."""
    found = window_pairs(run).filter(bad).sort(pl.col(f"{share}_last") - pl.col(f"{share}_first"), descending=True)
    return found.row(0, named=True) if found.height else None


class CommunicationGrew(Struct, frozen=True):
    """Thresholds of SLO015: difference and ratio of shares of the traced time."""

    points: float = 0.05
    ratio: float = 1.3


@rule("SLO015 trace-communication-grew", "spans", severity="warning", confidence="medium", cause="communication_grew")
def trace_communication_grew(run: Run, cfg: CommunicationGrew) -> Findings:
    """Compare the first and the last trace of each rank."""
    yield from grown(trace_communication_grew, run, "comm_share", rose("comm_share", cfg.points, cfg.ratio))


class MemoryOpsGrew(Struct, frozen=True):
    """Thresholds of SLO016: difference and ratio of shares of summed device time, ratio of counts a step.

    `least` is the share below which a count does not matter.
    """

    points: float = 0.03
    ratio: float = 1.5
    count_ratio: float = 2.0
    least: float = 0.01


@rule("SLO016 trace-memory-ops-grew", "spans", severity="warning", confidence="medium", cause="memory_ops_grew")
def trace_memory_ops_grew(run: Run, cfg: MemoryOpsGrew) -> Findings:
    """Compare the first and the last trace of each rank."""
    before, after = pl.col("memory_share_first"), pl.col("memory_share_last")
    more = multiplied("memory_each", cfg.count_ratio) & (after > before) & (after >= cfg.least)
    yield from grown(trace_memory_ops_grew, run, "memory_share", rose("memory_share", cfg.points, cfg.ratio) | more)


class OtherKernelsGrew(Struct, frozen=True):
    """Thresholds of SLO017: difference and ratio of shares of summed device time, ratio of counts a step."""

    points: float = 0.05
    ratio: float = 1.3
    count_ratio: float = 1.5


@rule("SLO017 trace-other-kernels-grew", "spans", severity="warning", confidence="medium", cause="other_kernels_grew")
def trace_other_kernels_grew(run: Run, cfg: OtherKernelsGrew) -> Findings:
    """Compare the first and the last trace of each rank."""
    before, after = pl.col("other_share_first"), pl.col("other_share_last")
    tiny = (pl.col("other_median_ns_last") < pl.col("other_median_ns_first")).fill_null(value=False)
    more = multiplied("other_each", cfg.count_ratio) & tiny & (after > before)
    yield from grown(trace_other_kernels_grew, run, "other_share", rose("other_share", cfg.points, cfg.ratio) | more)


class IdleGrew(Struct, frozen=True):
    """Thresholds of SLO037: difference, ratio and least size of the idle share of the traced time."""

    points: float = 0.05
    ratio: float = 1.3
    least: float = 0.15


@rule("SLO037 trace-idle-grew", "spans", severity="warning", confidence="medium", cause="idle_grew")
def trace_idle_grew(run: Run, cfg: IdleGrew) -> Findings:
    """Compare the first and the last trace of each rank."""
    bad = rose("idle_share", cfg.points, cfg.ratio) & (pl.col("idle_share_last") >= cfg.least)
    if (pair := most_grown(run, "idle_share", bad)) is None:
        return
    of_last = pl.col("source") == pair["source_last"]
    causes = idle_causes(run).filter(of_last)["cause"]
    gaps = longest(idle_gaps(run).filter(of_last), 2)
    shown = (span_evidence(gap, f"{ms(gap['dur_ns'])} without work before {quoted(gap['name'])}") for gap in gaps)
    words = "the device's idle time", f"; {mostly(causes[0])}"
    yield _finding(trace_idle_grew, pair, "idle_share", words, *shown)


#: What may explain a rise where a trace was taken before it and one after.
GREW = (trace_communication_grew, trace_idle_grew, trace_memory_ops_grew, trace_other_kernels_grew)
