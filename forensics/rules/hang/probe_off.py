"""HNG020 no-liveness-probe: a hang in a run whose settings leave it undetected or make it more likely.

What it detects: a liveness probe that is off, and prefetching that is known to dead-lock with FSDP.

Why it matters: with a probe and a time-out the same hang costs minutes and names its step.

How it decides: the setting stands in the configuration, and the run hung.

What else looks like this: nothing; it is advice.

What to do next: nccl_health_check_interval = 100 and a collective time-out; async_prefetch: false with FSDP.

References: KempnerForge, `[train]` settings; training frameworks' notes on FSDP and prefetching.

Example:
    ```facts key,value,family
    train.nccl_health_check_interval,0,config
    ```
    ```events source,line,rank,code,text,attrs
    a.log,9,0,nccl-watchdog,Watchdog caught it,"{""role"":""symptom"",""shape"":""hang""}"
    ```
    => HNG020 info confidence=medium causal=context
Not this:
    ```facts key,value,family
    train.nccl_health_check_interval,100,config
    ```
    ```events source,line,rank,code,text,attrs
    a.log,9,0,nccl-watchdog,Watchdog caught it,"{""role"":""symptom"",""shape"":""hang""}"
    ```
    => nothing
"""

from __future__ import annotations

import polars as pl

from forensics.case.errors.failures import standing
from forensics.knowledge.hazards import hazards_of
from forensics.rules.kit import Findings, Run, fact_evidence, proof, rule


@rule("hang", needs=("events", "facts", "metrics"), severity="info", confidence="medium", causal="context")
def probe_off(run: Run) -> Findings:
    """Advise on settings when a run hung."""
    if not any(f.shape == "hang" for f in standing(run)):
        return
    for hazard in hazards_of("hang"):
        stated = run.scan("facts").filter(pl.col("key").str.contains(hazard.keys)).sort("source", "key").head(1)
        for row in stated.collect().iter_rows(named=True):
            if (row["value"] or "").strip('"') in hazard.values:
                yield probe_off.finding(
                    hazard.says,
                    "the run hung, and its configuration says so",
                    proof(fact_evidence(row)),
                    next=(hazard.advice,),
                )
