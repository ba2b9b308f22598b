"""EVL016 eval-too-small: the error of a score is so large that it says nothing.

What it detects: tasks whose 95 % interval is wider than ten points of accuracy.

Why it matters: two runs would have to differ by some fifteen points before such a task could tell them apart.

How it decides: twice the standard error (from the file, else from the number of documents) is above five points.

What else looks like this: members of a group, each small; the group's own error is what counts, so they are left out.

What to do next: evaluate more documents; with `--log_samples` two runs are compared document by document, which is
worth many times more of them.

References: Miller 2024, "Adding Error Bars to Evals".

Example:
    ```evals line,task,metric,value,stderr,n
    7,arc_easy,acc,0.55,0.05,100
    ```
    => EVL016 info confidence=high cause=too_few_documents causal=context scores=1 stderr=0.05000
Not this:
    ```evals line,task,metric,value,stderr,n
    7,arc_easy,acc,0.55,0.01,2400
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.evals.results import Row, courses, error_of, members_of
from forensics.knowledge.scores import is_share
from forensics.rules.bad_eval._results import name_of, result_evidence
from forensics.rules.kit import Findings, Onset, Run, proof, rule

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Config:
    """Threshold of EVL016: half the width of the 95 % interval, in shares; five points hide most real changes."""

    half_width: float = 0.05


@rule(
    "bad_eval",
    needs=("evals",),
    config=Config,
    severity="info",
    confidence="high",
    cause="too_few_documents",
    causal="context",
)
def too_small(run: Run, cfg: Config) -> Findings:
    """Report the tasks with the largest errors, once."""
    last = [rows[-1] for key, rows in courses(run).items() if is_share(key[1])]
    inside = {task for row in last for task in members_of(row)}
    wide = [row for row in last if row["task"] not in inside and 2 * _error(row) > cfg.half_width]
    if not wide:
        return
    wide.sort(key=lambda row: -_error(row))
    first = wide[0]
    yield too_small.finding(
        f"{name_of(first)} is {first['value']:.3g} ± {2 * _error(first):.2g} (95 %): too few documents",
        f"{len(wide)} scores are that uncertain",
        proof(*map(result_evidence, wide[:_SHOWN])),
        Onset(step=first["step"]),
        numbers={"scores": len(wide), "stderr": _error(first)},
    )


def _error(row: Row) -> float:
    if row["stderr"] is not None:
        return float(row["stderr"])
    return error_of(row) or 0.0 if row["n"] else 0.0
