"""NAN008 nan-fp8-on: training went non-finite with fp8 switched on.

What it detects: a key of the run's configuration that turns fp8 on (float8, fp8, mxfp8, and Transformer Engine
recipes), in a run whose loss is lost.

Why it matters: fp8 divides by the largest magnitude of a block. A block of zeros, such as padding, or an outlier
breaks it at once, and switching it off is the cheapest experiment there is.

How it decides: the key's name or value names fp8 and the value is not off, and NAN001 finds an error. It is a
suspicion: the confidence is medium when the NaN was there from the start, else low.

What else looks like this: fp8 that is configured and works; kernels that name fp8 in a table of options.

What to do next: repeat from the last clean checkpoint with fp8 off.

References: Micikevicius et al., "FP8 Formats for Deep Learning" (2022).

Example:
    ```metrics seq,step,name,value
    1,1,loss,nan
    2,2,loss,nan
    ```
    ```facts source,line,key,value,family
    config.toml,4,train.fp8,true,config
    ```
    => NAN008 warning confidence=medium step=1 cause=fp8 causal=context
Not this:
    ```metrics seq,step,name,value
    1,1,loss,nan
    2,2,loss,nan
    ```
    ```facts source,line,key,value,family
    config.toml,4,train.fp8,false,config
    ```
    => nothing
"""

from __future__ import annotations

import polars as pl

from forensics.analyses.nan.onset import nan_onset
from forensics.analyses.nan.series import Status
from forensics.knowledge.vocabulary import words_for
from forensics.rules.kit import Findings, Run, fact_evidence, proof, rule

_OFF = ("false", "0", "null", "none", "no", "off", "", "disabled", "[]", "{}")


@rule("nan", needs=("metrics", "events", "facts"), severity="warning", cause="fp8", causal="context")
def fp8_on(run: Run) -> Findings:
    """Find the configuration key that turns fp8 on in a run that went non-finite."""
    found = nan_onset(run)
    if found is None or found.status is not Status.FAILED:
        return
    value = pl.col("value").fill_null("").str.strip_chars('"').str.to_lowercase()
    config = run.scan("facts").filter((pl.col("family") == "config") & ~value.is_in(_OFF))
    keys = (
        config.filter(pl.col("key").str.contains(words_for("fp8")) | value.str.contains(words_for("fp8")))
        .head(3)
        .collect()
    )
    if keys.is_empty():
        return
    yield fp8_on.finding(
        "fp8 was on when training went non-finite",
        "fp8 scaling breaks on blocks of zeros and on outliers; that it did here is a suspicion",
        proof(*(fact_evidence(row) for row in keys.iter_rows(named=True)), found.evidence()[0]),
        found.onset,
        confidence="medium" if found.n_before <= 1 else "low",
    )
