"""OOM009 host-memory-grows: the memory of the training process on the host rises all the time.

What it detects: a steady or stepwise rise of resident memory, or a steady fall of what the host has available.

Why it matters: the kernel or the scheduler ends the process with SIGKILL: no traceback is printed, and the log just
stops. On the device nothing is to be seen.

How it decides: resident memory of the process (never that of the whole host alone, which other jobs share) is a slope
or a staircase over at least `samples` records, by `gib` and `share` of its level or more. It is an error when the
process was killed by an unknown sender (exit code -9, `Killed`) while it rose, with the host nearly full where its size
is known: such a rise is what tells a host out-of-memory kill from a person's. Else a warning from `warn` of its level
on, below it a note.

What else looks like this: a data loader that caches its set by design; a memory-mapped file that is counted as
resident; Python's and glibc's arenas, which level off.

What to do next: fewer loader workers and a smaller prefetch; keep no Python lists of objects in a dataset (each worker
copies them on write: use arrays); look for tensors that a list on the host keeps.

References: PyTorch issue 13246 on copy-on-access in loader workers; Linux, proc(5), VmRSS.

Example:
    ```metrics
    step: 10..200/10
    process_rss_gib: 20.01 22.03 24.01 26.02 28.03 30.01 32.02 34.01 36.03 38.02 40.01 42.02 44.01 46.03 48.01 50.02
        52.01 54.02 56.03 58.01
    ```
    => OOM009 warning confidence=medium step=20 step_lo=10 cause=host_leak rise_gib=38.00 gib_per_step=0.2000
Not this: memory that rose while the first epoch was cached
    ```metrics
    step: 10..200/10
    process_rss_gib: 20.01 28.03 34.01 36.02 36.13 36.11 36.12 36.11 36.13 36.12 36.11 36.12 36.11 36.13 36.11 36.12
        36.11 36.12 36.13 36.11
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.memory.host_deaths import killed
from forensics.analyses.memory.series import series_of
from forensics.rules._errors import evidence_of
from forensics.rules.kit import EvidenceRole, Findings, Run, rule
from forensics.rules.oom._memory import amount, onset_of, ranks, reach_numbers, series_evidence, until, worst


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of OOM009: records, the least rise in GiB and of the level, that of a warning, and a nearly full host.

    A process grows by a tenth and more while caches fill; `kill` is the rise at which a kill is laid to memory where
    the size of the host is unknown.
    """

    samples: int = 20
    gib: float = 0.5
    share: float = 0.1
    warn: float = 0.5
    kill: float = 0.5
    full: float = 0.85


@rule("oom", needs=("metrics", "events", "facts"), config=Config, confidence="medium", cause="host_leak")
def host_memory_grows(run: Run, cfg: Config) -> Findings:
    """Find the process whose resident memory rises most."""
    found = [
        one
        for one in series_of(run)
        if one.meaning.quantity == "rss"
        and one.meaning.unit == "GiB"
        and one.form.kind in {"slope", "staircase"}
        and one.form.samples - one.form.warmup >= cfg.samples
        and one.form.rise >= max(cfg.gib, cfg.share * one.form.level)
    ]
    one = worst(found)
    if one is None:
        return
    first, last = float(one.y[one.form.warmup]), float(one.y[-1])
    risen = one.form.rise / max(first, 0.1)
    full = one.share >= cfg.full if one.share is not None else risen >= cfg.kill
    deaths = killed(run) if full else ()
    warn = risen >= cfg.warn
    yield host_memory_grows.finding(
        f"the process's memory on the host rises all the time: {amount(one, first)} → {amount(one, last)}{until(one)}",
        "it rises to the end, and the process was killed by a signal" if deaths else "it rises to the end",
        (
            *series_evidence(one, one.form.onset or 0, -1),
            *(e for e in evidence_of(deaths) if e.role is not EvidenceRole.CONTRADICTS),
        ),
        onset_of(one),
        severity="error" if deaths else "warning" if warn else "info",
        culprits=ranks(one),
        numbers={"rise_gib": one.form.rise, "gib_per_step": one.form.per_step, **reach_numbers(one)},
    )
