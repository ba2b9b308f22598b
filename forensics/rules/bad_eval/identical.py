"""EVL017 eval-identical: two checkpoints have the same scores to the last digit.

What it detects: results of two models or steps that are equal in every metric.

Why it matters: two different models never agree in ten scores to the last digit; the same weights were evaluated twice,
or answers came from a cache or the file was copied.

How it decides: at least ten metrics in common, not all of them 0 or 1, all equal, of files that name different models
or steps.

What else looks like this: two names of one checkpoint (`main` and the last step): then the equality is right.

What to do next: compare the hashes of the two checkpoints' weights; evaluate without a cache (`--use_cache`,
`--cache_requests`).

References: lm-evaluation-harness, caching of model responses.

Example:
    ```evals
    source: a.json*10 b.json*10
    line: (1..10)*2
    task: (t0 t1 t2 t3 t4 t5 t6 t7 t8 t9)*2
    metric: acc
    value: (0.511..0.599/0.011 0.611)*2
    step: 100*10 200*10
    ```
    => EVL017 warning confidence=high step=200 step_lo=100 cause=identical_results metrics=10
Not this:
    ```evals source,line,task,metric,value,step
    a.json,1,t0,acc,0.511,100
    a.json,2,t1,acc,0.522,100
    b.json,1,t0,acc,0.511,200
    b.json,2,t1,acc,0.522,200
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import polars as pl

from forensics.analyses.evals.results import Row, age
from forensics.rules.bad_eval._results import result_evidence
from forensics.rules.kit import Finding, Findings, Onset, Run, proof, rule

_FEWEST = 10
_KEY = ("task", "metric", "filter")


@rule("bad_eval", needs=("evals",), severity="warning", confidence="high", cause="identical_results")
def identical(run: Run) -> Findings:
    """Report the first two files that follow each other in step and time and are equal in every metric."""
    rows = run.collect("evals").filter(pl.col("value").is_finite())
    files = {str(source): part.to_dicts() for (source,), part in rows.group_by("source", maintain_order=True)}
    ordered = sorted((part for part in files.values() if len(part) >= _FEWEST), key=lambda part: age(part[0]))
    for before, after in pairwise(ordered):
        if (before[0]["model"], before[0]["step"]) == (after[0]["model"], after[0]["step"]):
            continue
        count = _equal(before, after)
        if count >= _FEWEST:
            yield _finding(before[0], after[0], count)
            return


def _equal(before: Sequence[Row], after: Sequence[Row]) -> int:
    """Metrics in common, if all are equal and some are neither 0 nor 1; else 0."""
    known = {tuple(row[c] for c in _KEY): row["value"] for row in before}
    common = [(known[key], row["value"]) for row in after if (key := tuple(row[c] for c in _KEY)) in known]
    telling = any(a not in (0, 1) for a, _ in common)
    return len(common) if telling and all(a == b for a, b in common) else 0


def _finding(before: Row, after: Row, count: int) -> Finding:
    return identical.finding(
        f"two results of different checkpoints are equal in all {count} metrics, to the last digit",
        "different weights do not give equal scores in every task",
        proof(result_evidence(after), result_evidence(before)),
        Onset(step=after["step"], step_lo=before["step"]),
        numbers={"metrics": count},
    )
