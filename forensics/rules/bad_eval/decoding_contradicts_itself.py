"""EVL004 decoding-contradicts-itself: the generation settings ask for sampling and for none at once.

What it detects: `do_sample` off beside a temperature, or on beside a temperature of zero.

Why it matters: what is decoded is not what the settings seem to say; two evaluations that read them differently (one
program heeds the temperature, the other `do_sample`) do not compare.

How it decides: both values stand in one file of generation settings. Off, with a temperature other than 0 and 1, is a
note: the temperature is ignored by some programs and heeded by others. On, with a temperature of 0, is a warning: some
programs refuse it, others decode greedily.

What else looks like this: settings that are overridden by the program that evaluates.

What to do next: write down the decoding in the call of the evaluation, and make the settings agree with it.

References: Hugging Face, `GenerationConfig.validate`.

Example:
    ```facts source,line,key,value,family
    generation_config.json,3,do_sample,true,generation
    generation_config.json,5,temperature,0.0,generation
    ```
    => EVL004 warning confidence=medium cause=zero_temperature causal=context temperature=0.0
Example: ignored
    ```facts source,line,key,value,family
    generation_config.json,3,do_sample,false,generation
    generation_config.json,5,temperature,0.6,generation
    ```
    => EVL004 info confidence=low cause=ignored_temperature causal=context temperature=0.6
Not this:
    ```facts source,line,key,value,family
    generation_config.json,3,do_sample,true,generation
    generation_config.json,5,temperature,0.6,generation
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from forensics.rules.kit import Finding, Findings, Run, fact_evidence, proof, rule


@rule("bad_eval", needs=("facts",), causal="context")
def decoding_contradicts_itself(run: Run) -> Findings:
    """Look at `do_sample` and `temperature` of each file of generation settings; say it once."""
    facts = run.scan("facts").filter((pl.col("family") == "generation") & pl.col("value").is_not_null()).collect()
    for _, rows in facts.sort("source", maintain_order=True).group_by("source", maintain_order=True):
        known = {str(row["key"]): row for row in rows.iter_rows(named=True)}
        if "do_sample" in known and "temperature" in known:
            found = _judged(known["do_sample"], known["temperature"])
            if found is not None:
                yield found
                return


def _judged(sampling: Mapping[str, Any], heat: Mapping[str, Any]) -> Finding | None:
    try:
        temperature = float(heat["value"])
    except ValueError:
        return None
    if sampling["value"] == "true" and temperature == 0:
        return _finding(sampling, heat, zero=True)
    if sampling["value"] == "false" and temperature not in (0.0, 1.0):
        return _finding(sampling, heat, zero=False)
    return None


def _finding(sampling: Mapping[str, Any], heat: Mapping[str, Any], *, zero: bool) -> Finding:
    state = "on" if zero else "off"
    return decoding_contradicts_itself.finding(
        f"sampling is {state} and the temperature is {heat['value']}",
        "programs that generate obey either one or the other",
        proof(fact_evidence(heat), fact_evidence(sampling)),
        severity="warning" if zero else "info",
        confidence="medium" if zero else "low",
        cause="zero_temperature" if zero else "ignored_temperature",
        numbers={"temperature": str(heat["value"])},
    )
