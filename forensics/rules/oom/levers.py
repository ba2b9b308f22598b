"""OOM017 unused-levers: memory ran out, and the configuration leaves settings unused that would have saved memory.

What it detects: switches in the run's own configuration that trade compute for memory, or a large batch for more small
ones, and are off.

Why it matters: these are the changes that cost least. Only what the configuration says is off is named, never what it
does not mention.

How it decides: a fatal device error, and a configuration that says: gradient checkpointing off; a micro-batch above 1
without accumulation; an attention that keeps the whole matrix (`eager`). Each is one line of the advice, in the order
of what it saves as a rule.

What else looks like this: a key of that name that another part of the program reads.

What to do next: change one at a time, from the top of the list.

References: Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"; Dao et al. 2022, "FlashAttention";
transformers, "Methods and tools for efficient training on a single GPU".

Example:
    ```events source,line,code,text,attrs
    train.log,14,cuda-oom,CUDA out of memory. Tried to allocate 9.25 GiB,"{""role"":""root"",""shape"":""oom""}"
    ```
    ```facts source,key,value,family
    config.json,gradient_checkpointing,false,config
    config.json,per_device_train_batch_size,8,config
    config.json,gradient_accumulation_steps,1,config
    ```
    => OOM017 info confidence=low cause=unused_levers causal=context
Not this: a configuration that uses them
    ```events source,line,code,text,attrs
    train.log,14,cuda-oom,CUDA out of memory. Tried to allocate 9.25 GiB,"{""role"":""root"",""shape"":""oom""}"
    ```
    ```facts source,key,value,family
    config.json,gradient_checkpointing,true,config
    config.json,per_device_train_batch_size,1,config
    config.json,gradient_accumulation_steps,8,config
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from forensics.case.settings import OFF, stated
from forensics.rules.kit import Findings, Run, fact_evidence, proof, rule
from forensics.rules.oom._memory import fatal, message_evidence, message_onset, ranks


@rule(
    "oom",
    needs=("events", "metrics", "facts"),
    severity="info",
    confidence="low",
    cause="unused_levers",
    causal="context",
)
def levers(run: Run) -> Findings:
    """List the settings that the configuration leaves unused, when memory ran out."""
    first = next(iter(fatal(run)), None)
    if first is None or first.reading in {"others", "limit"}:
        return
    found = list(_unused(run))
    if not found:
        return
    yield levers.finding(
        f"the configuration leaves {len(found)} way{'s' if len(found) > 1 else ''} of saving memory unused",
        "; ".join(f"{row['key']} = {row['value']}" for row in found),
        proof(*(fact_evidence(row) for row in found), message_evidence(first)),
        message_onset(first),
        culprits=ranks(first),
    )


def _unused(run: Run) -> Iterator[dict[str, Any]]:
    """Give the facts that say so: no recomputation, whole batches at once, attention that keeps its scores."""
    recompute = stated(run, "recompute")
    if recompute.height and recompute["said"].is_in(OFF).all():
        yield recompute.row(0, named=True)
    batch, often = stated(run, "micro_batch").head(1), stated(run, "accumulation").head(1)
    if often["said"].to_list() == ["1"] and batch["said"].cast(pl.Int64, strict=False).gt(1).any():
        yield batch.row(0, named=True)
    yield from stated(run, "attention").filter(pl.col("said") == "eager").head(1).iter_rows(named=True)
