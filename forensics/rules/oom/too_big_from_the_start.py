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

from collections.abc import Iterator
from dataclasses import dataclass

from forensics.case.lives import lives
from forensics.model import Causal, Confidence, Finding, Severity, Shape
from forensics.registry import rule
from forensics.rules.oom._memory import fatal, message_evidence, onset_at, ranks, size
from forensics.store.run import Run

_ADVICE = {
    "loading": ("weights", ("shard the model or quantise its weights",)),
    "forward": ("activations", ("a smaller micro-batch with accumulation", "activation checkpointing")),
    "backward": ("activations", ("a smaller micro-batch with accumulation", "activation checkpointing")),
    "optimizer": ("optimizer states", ("shard the optimizer states, use an 8-bit optimizer, or off-load them",)),
}


@dataclass(frozen=True, slots=True)
class Config:
    """Threshold of OOM006: the optimizer's states exist after the first step, workspaces after the second."""

    steps: int = 2


@rule(shape=Shape.OOM, needs=("events", "metrics", "checkpoints"), config=Config)
def too_big_from_the_start(run: Run, cfg: Config) -> Iterator[Finding]:
    """Find a fatal device error before the run had really begun."""
    first = next(iter(fatal(run)), None)
    if first is None or (first.step or 0) > cfg.steps or first.phase in {"evaluation", "generation", "checkpoint"}:
        return
    if any(life.last > cfg.steps for life in lives(run)) or first.reading in {"others", "limit"}:
        return
    what, steps = _ADVICE.get(first.phase, ("model or batch", ("a smaller micro-batch, or more sharding",)))
    tried = f" (tried to allocate {size(first.sizes.tried)})" if first.sizes.tried else ""
    held = f"; {size(first.sizes.allocated)} were allocated" if first.sizes.allocated else ""
    yield too_big_from_the_start.finding(
        severity=Severity.WARNING,
        confidence=Confidence.MEDIUM if first.phase in _ADVICE else Confidence.LOW,
        title=f"the job did not fit from the start: memory ran out for {what}{tried}",
        because=f"the error came before step {cfg.steps + 1}, in the phase that allocates them{held}",
        evidence=(message_evidence(first),),
        onset=onset_at(first),
        culprits=ranks(first),
        cause="too_big_" + (first.phase if first.phase in _ADVICE else "unknown"),
        causal=Causal.CONTEXT,
        likely=(f"the {what} do not fit on the device",),
        next=steps,
    )
