"""EVL010 eval-not-a-number: an evaluation gave no number where a score belongs.

What it detects: a metric of a task that is NaN, infinite or null.

Why it matters: means over tasks take the NaN along or silently leave the task out, and the comparison is worth nothing.

How it decides: the value as written is not finite. A group whose members all have scores is left out, as some
harnesses give no mean for a group.

What else looks like this: a perplexity beyond the largest float, of a model that is merely very bad at a text.

What to do next: look at the answers of that task (`--log_samples`): empty generations, a score of zero documents, or
logits that are NaN in the precision of the evaluation.

References: lm-evaluation-harness, `lm_eval/api/metrics.py` (a mean of no documents is NaN).

Example:
    ```evals line,task,metric,value,stderr
    7,arc_easy,acc,nan,
    11,piqa,acc,0.61,0.011
    ```
    => EVL010 warning confidence=high cause=score_not_a_number causal=context scores=1
Not this:
    ```evals line,task,metric,value,stderr
    7,arc_easy,acc,0.43,0.012
    11,piqa,acc,0.61,0.011
    ```
    => nothing
"""

from __future__ import annotations

import polars as pl

from forensics.analyses.evals.results import members_of
from forensics.rules.bad_eval._results import name_of, result_evidence
from forensics.rules.kit import Findings, Onset, Run, proof, rule

_SHOWN = 5


@rule("bad_eval", needs=("evals",), severity="warning", confidence="high", cause="score_not_a_number", causal="context")
def not_a_number(run: Run) -> Findings:
    """Report all scores that are no number, once."""
    value = pl.col("value")
    rows = run.scan("evals").filter(value.is_null() | ~value.is_finite()).collect().to_dicts()
    bad = [row for row in rows if not (row["value"] is None and members_of(row))]
    if not bad:
        return
    first = bad[0]
    yield not_a_number.finding(
        f"{name_of(first)} is {first['value']}" + (f", and {len(bad) - 1} more scores" if len(bad) > 1 else ""),
        "a score that is not a number means that nothing finite was scored",
        proof(*map(result_evidence, bad[:_SHOWN])),
        Onset(step=first["step"]),
        numbers={"scores": len(bad)},
    )
