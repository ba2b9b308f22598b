"""OOM006 too-big-from-the-start: memory ran out before the first steps were over.

What it detects: an out-of-memory error while the model was loaded or within the first steps.

Why it matters: nothing leaks and nothing grew: the job does not fit. Which phase it died in says what is too big.

How it decides: the first fatal device error stands at most at step `steps`, in the run's first attempt. The phase
comes from the frame that raised: loading means weights, forward and backward mean activations, the optimizer means its
states (Adam in fp32 keeps 8 bytes per parameter beside 4 of gradient).

What else looks like this: another process that already holds the device (OOM011); a sequence of unusual length in the
first batch; an evaluation before training starts (OOM005).

What to do next: weights: shard or quantise; activations: smaller micro-batch with accumulation, checkpointing, shorter
sequences; optimizer: shard its states, an 8-bit optimizer, or off-loading.

References: Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", section 3;
Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost".

Example:
    ```events source,line,code,text,attrs
    train.log,30,traceback,torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 768.00 MiB.,"{""role"":""root"",""exc"":""torch.OutOfMemoryError"",""message"":""CUDA out of memory. Tried to allocate 768.00 MiB."",""frame"":""torch/optim/adamw.py:160 _init_group""}"
    ```
    => OOM006 warning confidence=medium cause=too_big_optimizer causal=context
Not this: the same after some hundred steps
    ```metrics step,name,value,source,seq,line
    400,loss,2.5,train.log,1,20
    ```
    ```events source,line,code,text,attrs
    train.log,30,traceback,torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 768.00 MiB.,"{""role"":""root"",""exc"":""torch.OutOfMemoryError"",""message"":""CUDA out of memory. Tried to allocate 768.00 MiB."",""frame"":""torch/optim/adamw.py:160 _init_group""}"
    ```
    => nothing
"""  # noqa: E501 - a line of a log is one line

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.analyses.memory.oom_messages import OomMessage
from forensics.case.processes.lives import lives
from forensics.case.series import metric_records
from forensics.rules.kit import Findings, Run, proof, rule
from forensics.rules.oom._memory import fatal, message_evidence, message_onset, ranks, size

#: What each phase allocates, and the phase after which its cause is named.
_ALLOCATED = {
    "loading": ("weights", "loading"),
    "forward": ("activations", "forward"),
    "logits": ("logits", "forward"),
    "backward": ("activations", "backward"),
    "optimizer": ("optimizer states", "optimizer"),
}


@dataclass(frozen=True, slots=True)
class Config:
    """Threshold of OOM006: the optimizer's states exist after the first step, workspaces after the second."""

    steps: int = 2


@rule("oom", needs=("events", "metrics", "checkpoints"), config=Config, severity="warning", causal="context")
def too_big_from_the_start(run: Run, cfg: Config) -> Findings:
    """Find a fatal device error before the run had really begun."""
    first = next(iter(fatal(run)), None)
    if first is None or (first.step or 0) > cfg.steps or first.phase in {"evaluation", "generation", "checkpoint"}:
        return
    if any(life.last > cfg.steps for life in lives(run)) or first.reading in {"others", "limit"}:
        return
    if first.step is None and _records_before(run, first) > cfg.steps:
        return
    what, phase = _ALLOCATED.get(first.phase, ("model or batch", "unknown"))
    tried = f" (tried to allocate {size(first.sizes.tried)})" if first.sizes.tried else ""
    held = f"; {size(first.sizes.allocated)} were allocated" if first.sizes.allocated else ""
    yield too_big_from_the_start.finding(
        f"the job did not fit from the start: memory ran out for {what}{tried}",
        f"the error came before step {cfg.steps + 1}, in the phase that allocates them{held}",
        proof(message_evidence(first)),
        message_onset(first),
        confidence="medium" if first.phase in _ALLOCATED else "low",
        culprits=ranks(first),
        cause=f"too_big_{phase}",
    )


def _records_before(run: Run, first: OomMessage) -> int:
    """Count the training records above a message in its own file, for logs that number no step."""
    place = pl.coalesce("line", "byte", "seq").fill_null(0)
    above = metric_records(run).filter(pl.col("trains") & (pl.col("source") == first.source) & (place < first.at))
    return above.select("seq").unique().collect().height
