"""OOM016 one-large-request: memory had been level, and one request was too large.

What it detects: an out-of-memory error although the memory series before it is flat or has levelled off.

Why it matters: it rules a leak out. One batch, one evaluation or one generation asked for more than all others.

How it decides: the first fatal device message stands after a series of allocated or peak memory, of its rank, that is
flat, a plateau or spikes only, over at least `samples` records. The request and what was free are quoted.

What else looks like this: an input that grew just at the end; another process that took the device meanwhile (OOM011).

What to do next: find the batch of that step: its longest sequence, its number of tokens; limit the length or sort
batches by length; for logits, compute the loss in pieces.

References: PyTorch, CUDA semantics, "Memory management".

Example:
    ```metrics
    step: 10..120/10
    source: train.log
    line: 1..12
    mem_allocated_gib: 20.01 20.02 20.01 20.02 20.01 20.02 20.01 20.02 20.01 20.02 20.01 20.02
    ```
    ```events source,line,code,text,attrs
    train.log,14,cuda-oom,CUDA out of memory. Tried to allocate 9.25 GiB,"{""role"":""root"",""shape"":""oom""}"
    ```
    => OOM016 warning confidence=medium step=120 cause=one_large_request causal=context tried_bytes=9932111872
Not this: the same series in a run that went on
    ```metrics
    step: 10..120/10
    source: train.log
    line: 1..12
    mem_allocated_gib: 20.01 20.02 20.01 20.02 20.01 20.02 20.01 20.02 20.01 20.02 20.01 20.02
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.memory.series import series_of
from forensics.rules.kit import EvidenceRole, Findings, Run, rule
from forensics.rules.oom._memory import fatal, killer, message_evidence, message_onset, ranks, series_evidence, size


@dataclass(frozen=True, slots=True)
class Config:
    """Threshold of OOM016: records after warm-up that make a series level."""

    samples: int = 10


@rule(
    "oom",
    needs=("events", "metrics", "facts"),
    config=Config,
    severity="warning",
    confidence="medium",
    cause="one_large_request",
    causal="context",
)
def one_large_request(run: Run, cfg: Config) -> Findings:
    """Find a level series that a fatal device message follows."""
    first = next(iter(fatal(run)), None)
    if first is None or first.reading in {"others", "limit"}:
        return
    held = [s for s in series_of(run) if s.meaning.quantity in {"allocated", "active", "peak_allocated", "peak_active"}]
    level = [s for s in held if s.form.samples - s.form.warmup >= cfg.samples and killer(run, s) is first]
    if not level or any(s.form.kind not in {"flat", "plateau", "spike"} for s in level):
        return
    tried = first.sizes.tried
    asked = f"one request of {size(tried)}" if tried else "one request"
    yield one_large_request.finding(
        f"memory was level before it ran out: {asked} was too large, and nothing leaked",
        f"{len(level)} memory series up to then {'is' if len(level) == 1 else 'are'} flat or levelled off",
        (
            message_evidence(first),
            *(e for e in series_evidence(level[0], -1) if e.role is not EvidenceRole.CONTRADICTS),
        ),
        message_onset(first),
        culprits=ranks(first),
        numbers={} if tried is None else {"tried_bytes": tried},
    )
