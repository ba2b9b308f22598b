"""EVL014 eval-settings-change: evaluations of one task inside one run were made with different settings.

What it detects: results of one task whose few-shot examples, version, limit, documents, prompt or decoding differ
between checkpoints of the same run.

Why it matters: the curve over the steps then shows the settings, not the model; five examples instead of none move many
tasks by several points. The score of a group hides it, as only its members state their settings.

How it decides: two results that follow each other, of one model or of checkpoints of one run, differ in a setting that
both state, and the scores did not fall with it (EVL013 tells that). Other documents alone are a note: they shift a
score by chance only.

What else looks like this: two suites in one folder that share a task on purpose, once with and once without examples.

What to do next: compare only results with equal settings; evaluate the others again.

References: lm-evaluation-harness, `versions` and `n-shot` of its results.

Example:
    ```evals source,line,task,task_version,metric,value,stderr,fewshot,step
    a.json,7,arc_easy,1,acc,0.55,0.010,0,1000
    b.json,7,arc_easy,1,acc,0.60,0.010,5,2000
    ```
    => EVL014 warning confidence=high step=2000 step_lo=1000 cause=eval_settings_change causal=context tasks=1
Example: other documents
    ```evals source,line,task,metric,value,n,step
    a.json,7,arc_easy,acc,0.55,400,1000
    b.json,7,arc_easy,acc,0.56,500,2000
    ```
    => EVL014 info confidence=high step=2000 step_lo=1000 cause=eval_settings_change causal=context tasks=1
Not this:
    ```evals source,line,task,task_version,metric,value,stderr,fewshot,step
    a.json,7,arc_easy,1,acc,0.55,0.010,5,1000
    b.json,7,arc_easy,1,acc,0.60,0.010,5,2000
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.evals.causes import diagnosed
from forensics.analyses.evals.results import courses
from forensics.analyses.evals.settings import compared
from forensics.rules.bad_eval._results import following, result_evidence
from forensics.rules.kit import Findings, Onset, Run, proof, rule

_MOST = 20_000


@rule(
    "bad_eval",
    needs=("evals", "eval_samples", "facts", "metrics"),
    confidence="high",
    cause="eval_settings_change",
    causal="context",
)
def settings_change(run: Run) -> Findings:
    """Report the first pair of results with unequal settings, and how many tasks have such."""
    unlike = [(a, b, found) for a, b in following(courses(run))[:_MOST] if (found := compared(a, b).blocks)]
    fallen = run.derived(diagnosed)
    if not unlike or (fallen is not None and fallen.changed):
        return
    before, after, found = min(unlike, key=lambda one: all(u.family == "documents" for u in one[2]))
    of_documents = all(u.family == "documents" for u in found)
    tasks = {b["task"] for _, b, _ in unlike}
    yield settings_change.finding(
        f"{after['task']} was evaluated with other settings than before: {'; '.join(u.words for u in found[:3])}",
        f"scores of {len(tasks)} tasks cannot be put in one curve",
        proof(result_evidence(after), result_evidence(before)),
        Onset(step=after["step"], step_lo=before["step"]),
        severity="info" if of_documents else "warning",
        numbers={"tasks": len(tasks)},
        next=("evaluate both checkpoints with one command: the same decoding settings, the same harness",),
    )
