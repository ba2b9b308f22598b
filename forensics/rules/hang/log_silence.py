"""HNG018 log-silence: training stopped printing long before the job ended, and nothing says why.

What it detects: a long gap between the last training record and the last sign of life of the same log, with neither a
traceback nor a success marker between.

Why it matters: this is a hang that nobody's time-out noticed: the job held its machines until somebody ended it.

How it decides: both times stand in one file, so clocks cannot differ. The gap is more than ten times the usual time
between records, and more than five minutes. It is an error only when somebody then ended the job and the gap is more
than half an hour; otherwise a warning.

What else looks like this: a long evaluation or a checkpoint that prints nothing; a log that is written in large blocks.

What to do next: next time, `py-spy dump --pid PID` on every rank before ending the job, and a time-out for collectives.

References: py-spy; PyTorch, torch.distributed, `timeout` of init_process_group.

Example:
    ```metrics step,name,value,source,seq,line,t_ns
    1,loss,2.5,job.out,1,1,10000000000
    2,loss,2.4,job.out,2,2,20000000000
    3,loss,2.3,job.out,3,3,30000000000
    4,loss,2.3,job.out,4,4,40000000000
    ```
    ```events source,line,code,text,t_ns,attrs
    job.out,9,slurm-timelimit,CANCELLED DUE TO TIME LIMIT,9040000000000,"{""role"":""root"",""shape"":""stopped""}"
    ```
    => HNG018 error confidence=medium step=4 step_lo=4 t_ns=40000000000 cause=silent_stall gap_s=9000 usual_s=10.00
Not this:
    ```metrics step,name,value,source,seq,line,t_ns
    1,loss,2.5,job.out,1,1,10000000000
    2,loss,2.4,job.out,2,2,20000000000
    3,loss,2.3,job.out,3,3,30000000000
    4,loss,2.3,job.out,4,4,40000000000
    ```
    ```events source,line,code,text,t_ns,attrs
    job.out,9,slurm-timelimit,CANCELLED DUE TO TIME LIMIT,55000000000,"{""role"":""root"",""shape"":""stopped""}"
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from forensics.case.end_markers import marks_of
from forensics.case.errors.failures import Failure, standing
from forensics.case.errors.kinds import Weight
from forensics.case.series import metric_records
from forensics.rules._errors import of_failure
from forensics.rules.kit import Evidence, Finding, Findings, Locator, Onset, Run, proof, rule

_NS = 1e9


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of HNG018: seconds and usual intervals that a gap must exceed; seconds that make it an error."""

    silence_s: float = 300.0
    intervals: float = 10.0
    surely_s: float = 1800.0
    fewest: int = 4


@rule("hang", needs=("events", "metrics"), config=Config, confidence="medium", cause="silent_stall")
def log_silence(run: Run, cfg: Config) -> Findings:
    """Find a stop from outside that came long after the last training record of the same log."""
    found = standing(run)
    if marks_of(run).final is not None or any(f.weight > Weight.STOP for f in found):
        return
    stops = [f for f in found if f.weight == Weight.STOP and f.t_ns is not None]
    if not stops:
        return
    for row in _records(run, cfg.fewest).iter_rows(named=True):
        stop = next((f for f in stops if f.source == row["source"] and f.at > (row["line"] or 0)), None)
        if stop is None or stop.t_ns is None:
            continue
        gap_s, usual_s = (stop.t_ns - row["t_ns"]) / _NS, (row["usual"] or 0) / _NS
        if gap_s > max(cfg.silence_s, cfg.intervals * usual_s):
            yield _finding(row, stop, gap_s, usual_s, cfg)
            return


def _records(run: Run, fewest: int) -> pl.DataFrame:
    """Last training record of each source, and the median time between records."""
    times = (
        metric_records(run)
        .filter(pl.col("step").is_not_null() & pl.col("t_ns").is_not_null())
        .group_by("source", "seq")
        .agg(pl.col("t_ns").first(), pl.col("step").first(), pl.col("line").first())
        .sort("source", "seq")
    )
    return (
        times.group_by("source", maintain_order=True)
        .agg(
            usual=pl.col("t_ns").diff().median(),
            count=pl.len(),
            t_ns=pl.col("t_ns").last(),
            step=pl.col("step").last(),
            line=pl.col("line").last(),
        )
        .filter(pl.col("count") >= fewest)
        .collect()
    )


def _finding(row: dict[str, Any], stop: Failure, gap_s: float, usual_s: float, cfg: Config) -> Finding:
    last = Evidence(
        source=row["source"],
        locator=Locator(line=row["line"]),
        quote=f"last training record: step {row['step']}",
        step=row["step"],
        t_ns=row["t_ns"],
    )
    return log_silence.finding(
        f"nothing was trained in the last {gap_s / 60:.0f} minutes of the job (step {row['step']})",
        f"records usually came every {usual_s:.3g} s, and neither an error nor a success marker is between",
        proof(last, of_failure(stop)),
        Onset(step=row["step"], t_ns=row["t_ns"], step_lo=row["step"]),
        severity="error" if gap_s > cfg.surely_s else "warning",
        numbers={"gap_s": gap_s, "usual_s": usual_s},
    )
