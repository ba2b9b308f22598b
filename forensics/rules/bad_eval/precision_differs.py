"""EVL024 evaluated-in-other-precision: the results were made in a coarser precision than the model was trained in.

What it detects: evaluation results whose model was loaded in four or eight bits, or in float16 after training in
bfloat16 or float32.

Why it matters: activations beyond 65504 overflow in float16, and coarse weights cost accuracy, most in generation and
arithmetic; the loss of the run shows neither.

How it decides: the results state how the model was loaded, the settings of training state one precision, and the first
is of fewer bits, or float16 where training was not. Four or eight bits are a warning, float16 is a note.

What else looks like this: a run that was trained in four bits itself (QLoRA), which is left out.

What to do next: evaluate again with `dtype=bfloat16`, and compare the two with `forensics diff`.

References: Micikevicius et al. 2018, "Mixed Precision Training", on the range of float16; lm-evaluation-harness,
`model_args` (`dtype`, `load_in_4bit`, `load_in_8bit`).

Example:
    ```evals source,line,task,metric,value,stderr,settings
    results.json,7,arc_easy,acc,0.55,0.01,"{""model_args.load_in_4bit"":true}"
    ```
    ```facts source,line,key,value,family
    train.yaml,3,bf16,true,config
    ```
    => EVL024 warning confidence=medium cause=quantised causal=context
Example: float16
    ```evals source,line,task,metric,value,stderr,settings
    results.json,7,arc_easy,acc,0.55,0.01,"{""model_args.dtype"":""float16""}"
    ```
    ```facts source,line,key,value,family
    train.yaml,3,bf16,true,config
    ```
    => EVL024 info confidence=medium cause=float16 causal=context
Not this:
    ```evals source,line,task,metric,value,stderr,settings
    results.json,7,arc_easy,acc,0.55,0.01,"{""model_args.dtype"":""bfloat16""}"
    ```
    ```facts source,line,key,value,family
    train.yaml,3,bf16,true,config
    ```
    => nothing
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from forensics.analyses.evals.results import Row, settings_of
from forensics.knowledge.vocabulary import stands_for, words_for
from forensics.rules.bad_eval._results import result_evidence
from forensics.rules.kit import Finding, Findings, Onset, Run, fact_evidence, proof, rule

_FEW_BITS = ("model_args.load_in_4bit", "model_args.load_in_8bit", "model_args.quantization", "model_args.bits")
_DTYPES = ("model_args.dtype", "model_dtype", "model_args.torch_dtype")


@rule("bad_eval", needs=("evals", "facts"), confidence="medium", causal="context")
def precision_differs(run: Run) -> Findings:
    """Report the first file of results that was made in a coarser precision."""
    trained = _trained(run)
    if trained is None:
        return
    for row in run.collect("evals").unique("source", keep="first", maintain_order=True).iter_rows(named=True):
        found = _loaded(row)
        if found is not None:
            yield _finding(row, trained, *found)
            return


def _trained(run: Run) -> Mapping[str, Any] | None:
    """A setting that says that training was not in float16 or in few bits; None where another says that it was."""
    facts = run.scan("facts").filter(pl.col("family") == "config").collect()
    coarse = facts.filter(pl.col("key").str.contains(words_for("few_bits_setting")))
    if coarse.filter(~pl.col("value").is_in(["null", "false", "0"])).height:
        return None
    own = facts.filter(pl.col("key").str.contains(words_for("number_format_setting"))).iter_rows(named=True)
    rows = [row for row in own if row["value"] not in ("false", "null")]
    wide = [
        row for row in rows if row["value"] == "true" or stands_for("wide_number_format", str(row["value"]).strip('"'))
    ]
    return wide[0] if wide and len(wide) == len(rows) else None


def _loaded(row: Row) -> tuple[str, str] | None:
    """How the model was loaded, where that is coarse, and whether it was `quantised` or `float16`."""
    settings = settings_of(row)
    for key in _FEW_BITS:
        if str(settings.get(key, "")).lower() not in ("", "false", "none", "16", "32"):
            return f"{key.removeprefix('model_args.')}={settings[key]}", "quantised"
    told = next((str(settings[key]) for key in _DTYPES if key in settings), "")
    is_half = re.fullmatch(r"(?i)(?:torch\.)?(?:float16|fp16|half)", told) is not None
    return (f"dtype={told}", "float16") if is_half else None


def _finding(row: Row, trained: Mapping[str, Any], loaded: str, kind: str) -> Finding:
    is_coarse = kind == "quantised"
    return precision_differs.finding(
        f"the model was evaluated with {loaded}, and trained with {trained['key']} = {trained['value']}",
        "the results state how the model was loaded, the settings how it was trained",
        proof(result_evidence(row), fact_evidence(trained)),
        Onset(step=row["step"]),
        severity="warning" if is_coarse else "info",
        cause=kind,
    )
