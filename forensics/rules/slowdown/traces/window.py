"""Which steps a trace shows: before a slowdown, or in the warm-up."""

from __future__ import annotations

import polars as pl

from forensics.analyses.traces.steps import steps
from forensics.case.settings import keyed, keys_with
from forensics.knowledge.vocabulary import words_for
from forensics.rules.kit import Evidence, Findings, Onset, Run, Struct, fact_evidence, proof, remark, rule
from forensics.rules.slowdown._spans import span_evidence
from forensics.rules.slowdown.changes import step_time_level_shift


@rule(
    "SLO019 trace-before-onset",
    "spans events metrics checkpoints progress",
    severity="info",
    confidence="medium",
    cause="trace_before_onset",
)
def trace_before_onset(run: Run) -> Findings:
    """Say so when the traces were taken before the slowdown began."""
    if (traced := _traced(run)) is None:
        return
    last, mark = traced
    slower = next(iter(step_time_level_shift(run)), None)
    onset = slower.onset.step if slower is not None else None
    if slower is None or onset is None or last >= onset:
        return
    yield trace_before_onset.finding(
        f"the last profiler trace ends at step {last}, before the steps became slower at step {onset}: "
        "it cannot explain why",
        f"all {steps(run).height} traced steps precede the onset",
        proof(mark, *slower.evidence[:1]),
        Onset(step=onset, step_lo=last),
        numbers={"last_traced_step": last, "onset_step": onset},
        next=(f"take a trace of a few steps after step {onset}, then: forensics kernels BEFORE AFTER",),
    )


class Warmup(Struct, frozen=True):
    """Threshold of SLO035: the first step that may be steady."""

    steady: int = 10


@remark("SLO035 traced-warmup", "spans facts", confidence="medium", cause="trace_of_warmup")
def traced_warmup(run: Run, cfg: Warmup) -> Findings:
    """Say so when nothing but the first steps was profiled."""
    last = _traced(run) or _planned(run)
    if last is None or last[0] >= cfg.steady:
        return
    step, evidence = last
    yield traced_warmup.finding(
        f"the last profiled step is {step}: the profile is of the warm-up, and its shares are not those of the run",
        f"steps below {cfg.steady} compile, choose kernels and reserve memory",
        proof(evidence),
        Onset(step=step),
        numbers={"last_step": step},
    )


def _traced(run: Run) -> tuple[int, Evidence] | None:
    marks = steps(run)
    if marks.is_empty():
        return None
    row = marks.sort("step").row(-1, named=True)
    mark = {**row, "name": f"ProfilerStep#{row['step']}", "dur_ns": row["end_ns"] - row["start_ns"]}
    return int(row["step"]), span_evidence(mark, f"the last traced step is {row['step']}")


def _planned(run: Run) -> tuple[int, Evidence] | None:
    if not keys_with(run, words_for("profiled_steps")):
        return None
    off = keyed(run, words_for("profiler_switch")).filter(pl.col("value").str.contains(words_for("switched_off")))
    found = keyed(run, words_for("profiled_steps")).join(off, on="source", how="anti")
    told = found.with_columns(step=pl.col("value").str.extract_all(r"\d+").list.last().cast(pl.Int64, strict=False))
    rows = told.filter(pl.col("step").is_not_null()).sort("step").collect()
    if rows.is_empty():
        return None
    row = rows.row(-1, named=True)
    return int(row["step"]), fact_evidence(row)
