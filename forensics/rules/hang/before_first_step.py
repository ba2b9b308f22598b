"""HNG022 stuck-before-first-step: ranks began to join each other, and the job was ended before any step was logged.

What it detects: lines of a start (a process group, a master address, a communicator's bootstrap), no training record at
all, and a stop from outside long after.

Why it matters: the scheduler's word is that the time was over. The time was spent waiting for a rank that did not come.

How it decides: the stop came at least `silence_s` after the line with which a rank began to join, in the same file,
with neither an error nor a success marker. No training record is there, and no counter of steps, evaluations or
samples moved.

What else looks like this: a program that joins its ranks and trains without a word; a compilation of an hour.

What to do next: start again with NCCL_DEBUG=INFO and TORCH_DISTRIBUTED_DEBUG=DETAIL, and look for the rank that is
missing.

References: PyTorch, torch.distributed, "Debugging torch.distributed applications".

Example:
    ```events source,line,code,text,t_ns,attrs
    job.out,1,group-joining,initializing process group (rank=0 world_size=8),10000000000,"{""role"":""context""}"
    job.out,9,slurm-timelimit,CANCELLED DUE TO TIME LIMIT,7210000000000,"{""role"":""root"",""shape"":""stopped""}"
    ```
    => HNG022 error confidence=medium t_ns=10000000000 cause=stuck_before_first_step waited_s=7200
Not this: the job was ended soon
    ```events source,line,code,text,t_ns,attrs
    job.out,1,group-joining,initializing process group (rank=0 world_size=8),10000000000,"{""role"":""context""}"
    job.out,9,slurm-timelimit,CANCELLED DUE TO TIME LIMIT,310000000000,"{""role"":""root"",""shape"":""stopped""}"
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.case.end_markers import marks_of
from forensics.case.errors.failures import standing
from forensics.case.errors.kinds import Weight
from forensics.case.progress import ledger
from forensics.case.series import metric_records
from forensics.knowledge.errors import telling
from forensics.rules._errors import of_failure
from forensics.rules.kit import Findings, Onset, Run, event_evidence, proof, rule

_NS = 1e9
#: What a counter counts when the program is at work; loading and data are part of a start.
_WORK = frozenset({"train", "eval", "sampling", ""})


@dataclass(frozen=True, slots=True)
class Config:
    """Threshold of HNG022: seconds from joining to the end; PyTorch gives up a collective of gloo after 1800 s."""

    silence_s: float = 1800.0


@rule(
    "hang",
    needs=("events", "metrics"),
    config=Config,
    severity="error",
    confidence="medium",
    cause="stuck_before_first_step",
)
def before_first_step(run: Run, cfg: Config) -> Findings:
    """Find a start that never came to a step."""
    found = standing(run)
    stop = next((f for f in found if f.weight == Weight.STOP and f.t_ns is not None), None)
    if stop is None or stop.t_ns is None or any(f.weight > Weight.STOP for f in found):
        return
    if marks_of(run).final is not None or _worked(run):
        return
    dated = pl.col("code").is_in(telling("joining")) & pl.col("t_ns").is_not_null() & (pl.col("t_ns") < stop.t_ns)
    first = run.scan("events").filter(dated & (pl.col("source") == stop.source)).sort("seq").head(1).collect()
    for row in first.iter_rows(named=True):
        waited_s = (stop.t_ns - row["t_ns"]) / _NS
        if waited_s >= cfg.silence_s:
            yield before_first_step.finding(
                f"no step was logged in the {waited_s / 60:.0f} minutes after the ranks began to join each other",
                "no training record, no error and no success marker is between the start and the end of the job",
                proof(event_evidence(row), of_failure(stop)),
                Onset(t_ns=row["t_ns"], rank=row["rank"]),
                numbers={"waited_s": waited_s},
            )


def _worked(run: Run) -> bool:
    """Whether anything was trained, evaluated or sampled: a record says so, or a counter that moved."""
    moved = any(counter.what in _WORK and counter.done for counter in ledger(run).counters)
    return moved or not metric_records(run).filter("trains").head(1).collect().is_empty()
