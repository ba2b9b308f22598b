"""SLO032 waits-for-data: a large part of each step is the wait for its batch, by the times that the log prints.

What it detects: a time of data beside the time of the step, of the same record.

Why it matters: the device idles meanwhile. A fifth of each step makes a run a quarter longer than its compute.

How it decides: the median of data time over step time, without the first tenth of the records, is `much` or more; a
note from `some` on. Loops that time both count the wait inside the step, so the share is of the whole.

What else looks like this: a loader timed with the copy to the device, or with the step before it still running.

What to do next: more workers, prefetch and pinned memory; prepare data beforehand; pack sequences.

References: PyTorch, "Performance Tuning Guide", on asynchronous data loading.

Example:
    ```metrics
    step: 10..120/10
    step_time_s: 0.5
    data_time: 0.22 0.23 0.21 0.22 0.24 0.22 0.23 0.22 0.21 0.22 0.23 0.22
    ```
    => SLO032 warning confidence=high step=20 cause=dataloader share=0.4400 records=11
Not this: a loader that keeps up
    ```metrics
    step: 10..120/10
    step_time_s: 0.5
    data_time: 0.02 0.01 0.02 0.01 0.02 0.01 0.02 0.01 0.02 0.01 0.02 0.01
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.pace.parts import data_waits
from forensics.rules.kit import Findings, Run, onset_at, proof, rule


@dataclass(frozen=True, slots=True)
class DataWait:
    """Thresholds of SLO032: shares of a step, and the fewest records."""

    some: float = 0.1
    much: float = 0.2
    records: int = 10


@rule("slowdown", needs=("metrics",), config=DataWait, confidence="high", cause="dataloader")
def data_wait(run: Run, cfg: DataWait) -> Findings:
    """Find the source whose steps wait longest for data."""
    found = [one for one in data_waits(run) if one.records >= cfg.records and one.whole is not None]
    one = max(found, key=lambda part: part.share, default=None)
    if one is None or one.whole is None or one.share < cfg.some:
        return
    yield data_wait.finding(
        f"the wait for data is {100 * one.share:.0f} % of each step (median {one.amount:.3g} s of {one.whole:.3g} s)",
        f"{one.records} records hold both times; the device has nothing to do until the batch is there",
        proof(one.first, one.last),
        onset_at(one.first),
        severity="warning" if one.share >= cfg.much else "info",
        numbers={"share": one.share, "records": one.records},
    )
