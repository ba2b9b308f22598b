"""OOM018 logits-too-large: the request that failed has the size of the logits of one whole batch.

What it detects: a failed request as large as batch x sequence x vocabulary (x generations) in two or four bytes.

Why it matters: with a large vocabulary the logits are the largest tensor of the step. They exist once in the model's
type, again in fp32 for the loss, and again as their gradient, so the batch size decides.

How it decides: the configuration gives micro-batch, sequence length and vocabulary (and generations per prompt in RL);
their product in 2 or 4 bytes is within `within` of the request of the first fatal device message. Else the stack says
that the request was made where log-probabilities or the cross entropy are computed.

What else looks like this: another tensor of that size by chance; the allocator rounds requests up to 2 MiB.

What to do next: a micro-batch of 1 or 2; a loss that works in pieces or is fused with the last layer; fewer
generations at once.

References: Hsu et al. 2024, "Liger Kernel", on the fused cross entropy; Wijmans et al. 2024, "Cut Your Losses in
Large-Vocabulary Language Models".

Example:
    ```events source,line,code,text,attrs
    train.log,14,cuda-oom,CUDA out of memory. Tried to allocate 15.62 GiB,"{""role"":""root"",""shape"":""oom""}"
    ```
    ```facts source,key,value,family
    config.json,per_device_train_batch_size,16,config
    config.json,max_seq_length,4096,config
    config.json,vocab_size,128000,config
    ```
    => OOM018 warning confidence=medium cause=logits_too_large causal=context expected_bytes=16777216000
Not this: a request of another size
    ```events source,line,code,text,attrs
    train.log,14,cuda-oom,CUDA out of memory. Tried to allocate 1.12 GiB,"{""role"":""root"",""shape"":""oom""}"
    ```
    ```facts source,key,value,family
    config.json,per_device_train_batch_size,16,config
    config.json,max_seq_length,4096,config
    config.json,vocab_size,128000,config
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from forensics.case.settings import stated
from forensics.rules.kit import Findings, Run, fact_evidence, proof, rule
from forensics.rules.oom._memory import fatal, message_evidence, message_onset, ranks, size

_BYTES = (2, 4)
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of OOM018: how near the sizes must be, and the least request (smaller ones are met by chance)."""

    within: float = 0.05
    least_bytes: int = 1 << 30


@rule(
    "oom",
    needs=("events", "metrics", "facts"),
    config=Config,
    severity="warning",
    cause="logits_too_large",
    causal="context",
)
def logits_too_large(run: Run, cfg: Config) -> Findings:
    """Compare the failed request with the size of the logits by the configuration."""
    first = next(iter(fatal(run)), None)
    tried = first.sizes.tried if first is not None else None
    if first is None or tried is None or tried < cfg.least_bytes:
        return
    rows, expected = _expected(run, tried, cfg) or ([], 0)
    if not rows and first.phase != "logits":
        return
    words = " x ".join(f"{n:,}" for _, n in rows)
    yield logits_too_large.finding(
        f"the request that failed ({size(tried)}) "
        + ("has the size of the logits of one batch" if rows else "was made where the logits are computed"),
        f"{words} x {expected // prod(n for _, n in rows)} bytes = {size(expected)}" if rows else "the stack says so",
        proof(message_evidence(first), *(fact_evidence(row) for row, _ in rows)),
        message_onset(first),
        confidence="medium" if rows else "low",
        culprits=ranks(first),
        numbers={"tried_bytes": tried} | ({"expected_bytes": expected} if rows else {}),
    )


def _expected(run: Run, tried: int, cfg: Config) -> tuple[list[tuple[Row, int]], int] | None:
    """The settings whose product is the request, and that product; None where none is as large."""
    batch, length = _first(run, "micro_batch", "batch"), _first(run, "sequence", "completion_length")
    vocabulary, many = _first(run, "vocabulary"), _first(run, "generations")
    if batch is None or length is None or vocabulary is None:
        return None
    one = [batch, length, vocabulary]
    for width, used in product(_BYTES, (one, [*one, many]) if many is not None else (one,)):
        expected = width * prod(n for _, n in used)
        if abs(expected - tried) <= cfg.within * tried:
            return used, expected
    return None


def _first(run: Run, *names: str) -> tuple[Row, int] | None:
    """Give the first fact that states a count, by the first of the settings that has one, and the count."""
    for row in (row for name in names for row in stated(run, name).iter_rows(named=True)):
        if row["said"].isdigit() and 0 < int(row["said"]) < 1 << 40:
            return row, int(row["said"])
    return None
