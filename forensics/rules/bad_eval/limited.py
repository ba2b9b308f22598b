"""EVL011 eval-limited: the evaluation scored only a part of its documents.

What it detects: results that were made with a limit on the number of documents.

Why it matters: a limit is for a smoke test; it takes the first documents, not a sample, so its scores are neither exact
nor comparable with those of the whole task.

How it decides: the results state a limit, or fewer documents scored than the task has.

What else looks like this: a task whose documents are filtered on purpose; then no limit is stated, and the numbers of
documents differ only there.

What to do next: evaluate again without `--limit`; do not put these scores beside others.

References: lm-evaluation-harness, `--limit` ("only use this for testing").

Example:
    ```evals line,task,metric,value,stderr,n,settings
    7,arc_easy,acc,0.52,0.071,50,"{""limit"":50.0,""n_original"":2400}"
    ```
    => EVL011 warning confidence=high cause=evaluation_limited causal=context tasks=1 documents=50
Not this:
    ```evals line,task,metric,value,stderr,n,settings
    7,arc_easy,acc,0.52,0.010,2400,"{""limit"":""none"",""n_original"":2400}"
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.evals.results import Row, members_of, settings_of
from forensics.rules.bad_eval._results import result_evidence
from forensics.rules.kit import Findings, Onset, Run, proof, rule

_SHOWN = 3


@rule("bad_eval", needs=("evals",), severity="warning", confidence="high", cause="evaluation_limited", causal="context")
def limited(run: Run) -> Findings:
    """Report results of a limited evaluation, once."""
    tasks: dict[tuple[str, str], Row] = {}
    for row in run.collect("evals").iter_rows(named=True):
        if (row["source"], row["task"]) not in tasks and not members_of(row) and _is_limited(row):
            tasks[row["source"], row["task"]] = row
    if not tasks:
        return
    rows = list(tasks.values())
    settings = settings_of(rows[0])
    limit, whole = settings.get("limit", "not stated"), settings.get("n_original", "?")
    yield limited.finding(
        f"{rows[0]['task']} was evaluated on {rows[0]['n'] or '?'} of {whole} documents (limit {limit})",
        "the first documents of a task are not a random sample of it",
        proof(*map(result_evidence, rows[:_SHOWN])),
        Onset(step=rows[0]["step"]),
        numbers={"tasks": len(rows), "documents": rows[0]["n"] or 0},
    )


def _is_limited(row: Row) -> bool:
    settings = settings_of(row)
    limit, whole, n = settings.get("limit", "none"), settings.get("n_original"), row["n"]
    if isinstance(whole, (int, float)) and n is not None and n >= whole:
        return False
    return limit != "none"
