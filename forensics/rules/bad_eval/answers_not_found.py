"""EVL019 answers-not-found: a generative task scores zero because its answers are not found in the text.

What it detects: exact match of zero under one filter while another filter of the same task finds right answers.

Why it matters: the model may know the answers; what is measured is whether it writes them in the expected form, which
depends on chat template, few-shot examples and stop sequences more than on the weights.

How it decides: under one filter the score is at most one percent, under another of the same task and file at least ten.

What else looks like this: a filter that is meant to be strict, on a base model that was never shown the form.

What to do next: apply the chat template, or give few-shot examples; look at the answers with `--log_samples`.

References: lm-evaluation-harness, filters of gsm8k (`strict-match`, `flexible-extract`).

Example:
    ```evals line,task,metric,filter,value,stderr
    7,gsm8k,exact_match,strict-match,0.002,0.001
    9,gsm8k,exact_match,flexible-extract,0.46,0.014
    ```
    => EVL019 warning confidence=high cause=answers_not_found strict=0.002000 other=0.4600
Not this:
    ```evals line,task,metric,filter,value,stderr
    7,gsm8k,exact_match,strict-match,0.44,0.014
    9,gsm8k,exact_match,flexible-extract,0.46,0.014
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.rules.bad_eval._results import name_of, result_evidence
from forensics.rules.kit import Findings, Onset, Run, proof, rule


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of EVL019, as shares: found by the strict filter at most, by another at least."""

    strict: float = 0.01
    other: float = 0.1


@rule("bad_eval", needs=("evals",), config=Config, severity="warning", confidence="high", cause="answers_not_found")
def answers_not_found(run: Run, cfg: Config) -> Findings:
    """Report each task of which one filter finds no answer and another does."""
    rows = run.collect("evals").filter((pl.col("metric") == "exact_match") & pl.col("filter").is_not_null())
    for _, part in rows.group_by("source", "task", maintain_order=True):
        low, high = part.sort("value").row(0, named=True), part.sort("value").row(-1, named=True)
        if low["value"] is None or low["value"] > cfg.strict or not high["value"] >= cfg.other:
            continue
        yield answers_not_found.finding(
            f"{name_of(low)} is {low['value']:.3g} while {high['filter']} finds {high['value']:.3g}",
            "the same answers are right under one filter and not found under the other",
            proof(result_evidence(low), result_evidence(high)),
            Onset(step=low["step"]),
            numbers={"strict": low["value"], "other": high["value"]},
        )
