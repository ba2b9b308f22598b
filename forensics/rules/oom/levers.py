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

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from forensics.rules.kit import Findings, Run, fact_evidence, proof, rule
from forensics.rules.oom._memory import fatal, message_evidence, message_onset, ranks

_CHECKPOINTING = ("gradient_checkpointing", "activation_checkpointing", "use_gradient_checkpointing", "recompute")
_BATCH = ("per_device_train_batch_size", "micro_batch_size", "train_micro_batch_size_per_gpu", "micro_batch")
_ACCUMULATION = ("gradient_accumulation_steps", "grad_accum_steps", "accumulate_grad_batches", "grad_accumulation")
_ATTENTION = ("attn_implementation", "_attn_implementation", "attention_implementation")
_OFF = frozenset({"false", "0", "none", "null", "off"})


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
    facts = _facts(run)
    found = [*_checkpointing(facts), *_batch(facts), *_attention(facts)]
    if not found:
        return
    yield levers.finding(
        f"the configuration leaves {len(found)} way{'s' if len(found) > 1 else ''} of saving memory unused",
        "; ".join(f"{row['key']} = {row['value']}" for row in found),
        proof(*(fact_evidence(row) for row in found), message_evidence(first)),
        message_onset(first),
        culprits=ranks(first),
    )


Row = Mapping[str, Any]


def _facts(run: Run) -> dict[str, Row]:
    """Facts of interest by the last part of their key, the first of each."""
    names = [*_CHECKPOINTING, *_BATCH, *_ACCUMULATION, *_ATTENTION]
    last = pl.col("key").str.split(".").list.last().alias("last")
    rows = run.scan("facts").with_columns(last).filter(pl.col("last").is_in(names)).collect()
    return {row["last"]: row for row in reversed(rows.to_dicts())}


def _value(row: Row) -> str:
    return str(row["value"] or "").strip().strip('"').lower()


def _checkpointing(facts: Mapping[str, Row]) -> Iterator[Row]:
    said = [facts[name] for name in _CHECKPOINTING if name in facts]
    if said and all(_value(row) in _OFF for row in said):
        yield said[0]


def _batch(facts: Mapping[str, Row]) -> Iterator[Row]:
    batch = next((facts[name] for name in _BATCH if name in facts), None)
    often = next((facts[name] for name in _ACCUMULATION if name in facts), None)
    once = often is not None and _value(often) == "1"
    if batch is not None and once and _value(batch).isdigit() and int(_value(batch)) > 1:
        yield batch


def _attention(facts: Mapping[str, Row]) -> Iterator[Row]:
    for name in _ATTENTION:
        if name in facts and _value(facts[name]) == "eager":
            yield facts[name]
            return
