"""SLO008 low-mfu: the devices do a small part of the arithmetic they could.

What it detects: a model-FLOPs utilisation (MFU, HFU) that is low all along.

Why it matters: the run works, and costs a multiple of what it could.

How it decides: the median after the first tenth lies below `low`. It is a warning where the settings keep the fast path
off: full fp32, or an eager attention. Else a note: what can be reached depends on the model and the device, and without
a reference run a low level is no fault.

What else looks like this: a model that is small on purpose; a peak that the trainer assumes wrongly.

What to do next: take a profiler trace of a few steady steps.

References: Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways" (2022), appendix B, which defines MFU.

Example:
    ```metrics
    step: 1..10
    mfu: 0.031 0.03 0.029 0.031 0.03 0.03 0.031 0.03 0.029 0.03
    ```
    => SLO008 info confidence=low step=2 cause=low_mfu causal=context mfu=0.03000 records=9
Example: full precision and an eager attention
    ```metrics
    step: 1..10
    mfu: 0.071 0.07 0.069 0.071 0.07 0.07 0.071 0.07 0.069 0.07
    ```
    ```facts key,value,family
    attn_implementation,eager,config
    bf16,false,config
    ```
    => SLO008 warning confidence=medium step=2 cause=low_mfu causal=symptom mfu=0.07000 records=9
Not this: a usual value, in percent
    ```metrics
    step: 1..10
    mfu: 41 42 41.5 40.9 41 42 41.7 41 41 42
    ```
    => nothing
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from forensics.case.series import metric_rows
from forensics.case.settings import settings
from forensics.case.steps import ordered
from forensics.knowledge.ranges import range_of
from forensics.knowledge.vocabulary import words_for
from forensics.rules.kit import Finding, Findings, Onset, Run, proof, rule

_FULL, _OFF = re.compile(r"32.*|fp32|float32"), frozenset(("false", "0", "no", "off"))


@dataclass(frozen=True, slots=True)
class Utilisation:
    """Thresholds of SLO008: a median model-FLOPs utilisation below `low` (a share of 1), over `records` at least."""

    low: float = range_of("mfu").lo
    records: int = 8


@rule(
    "slowdown",
    needs=("metrics", "facts"),
    config=Utilisation,
    cause="low_mfu",
)
def low_mfu(run: Run, cfg: Utilisation) -> Findings:
    """Find the lowest median utilisation that a source prints."""
    named = pl.col("name").str.contains(words_for("utilisation"))
    rows = ordered(metric_rows(run, named).filter((pl.col("value") > 0) & pl.col("value").is_finite())).collect()
    for _, part in rows.group_by(["source", "raw_name"], maintain_order=True):
        late = part.slice(part.height // 10)
        middle = late["value"].median()
        if late.height < cfg.records or not isinstance(middle, float):
            continue
        share = middle / 100 if "pct" in late["name"][0] or "percent" in late["name"][0] or middle > 1.5 else middle
        if share < cfg.low:
            yield _finding(run, late, share)
            return


def _finding(run: Run, rows: pl.DataFrame, share: float) -> Finding:
    first, slow = rows.row(0, named=True), _slow_path(run)
    return low_mfu.finding(
        f"the model uses {100 * share:.1f} % of the arithmetic that its devices could do (median)",
        f"the median of {rows.height} records; dense transformers reach 30 to 60 % where they are tuned",
        proof(first, rows.row(-1, named=True)),
        Onset(step=first["at"], rank=first["rank"]),
        numbers={"mfu": share, "records": rows.height},
        severity="warning" if slow else "info",
        confidence="medium" if slow else "low",
        causal="symptom" if slow else "context",
    )


def _slow_path(run: Run) -> bool:
    """Whether the settings keep matrix products in fp32, or all of the attention's matrix in memory."""
    said = {name: setting.value.lower() for name, setting in settings(run).items()}
    full = _FULL.fullmatch(said.get("precision", "fp32" if said.get("bf16") in _OFF else ""))
    return full is not None or said.get("attention") == "eager"
