"""EVL015 eval-of-another-step: results are filed under one step and were made of another.

What it detects: an evaluation whose model arguments name another step than the file or folder of its results.

Why it matters: the score is read as that of a checkpoint which was never evaluated.

How it decides: the step in the name of the weights and the step that the results state, or that the name of their file
has, are both there and differ. A folder with results of several steps, and weights that are evaluated under several
steps, do not tell. It is an error where the scores are also far below those before (EVL013 says what far is).

What else looks like this: a folder that is named for the step at which a series of evaluations began.

What to do next: evaluate the checkpoint that the file is named for; give the path of the results from the same variable
as the path of the checkpoint.

References: lm-evaluation-harness, `model_args` (`pretrained`, `revision`, `peft`).

Example:
    ```evals source,line,task,metric,value,stderr,step,settings
    evals/step2000/results.json,7,arc_easy,acc,0.55,0.01,1000,"{""model_args.pretrained"":""out/checkpoint-1000""}"
    ```
    => EVL015 warning confidence=medium step=2000 cause=wrong_checkpoint filed=2000 evaluated=1000
Example: the weights that training began with
    ```evals source,line,task,metric,value,n,step,settings
    eval/step_40.json,2,sums,acc,0.61,400,40,"{""step"":40,""checkpoint"":""out/step_40""}"
    eval/step_80.json,2,sums,acc,0.02,400,0,"{""step"":80,""checkpoint"":""out/step_0""}"
    ```
    => EVL015 error confidence=high step=80 cause=wrong_checkpoint filed=80 evaluated=0
Not this:
    ```evals source,line,task,metric,value,stderr,step,settings
    evals/step2000/results.json,7,arc_easy,acc,0.55,0.01,2000,"{""model_args.pretrained"":""out/checkpoint-2000""}"
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.evals.causes import diagnosed
from forensics.analyses.evals.results import Row
from forensics.analyses.evals.sittings import evaluated_step, filed_step, of_wrong_checkpoint, weights_of
from forensics.rules.bad_eval._results import result_evidence
from forensics.rules.bad_eval.falls import Config
from forensics.rules.kit import Finding, Findings, Onset, Run, proof, rule


@rule("bad_eval", needs=("evals", "eval_samples", "facts", "metrics"), config=Config, cause="wrong_checkpoint")
def wrong_checkpoint(run: Run, cfg: Config) -> Findings:
    """Report each file of results that is filed under another step than that of its weights."""
    found = run.derived(diagnosed)
    fall = found.fall if found is not None and found.is_of_wrong_weights else None
    is_far = fall is not None and fall.errors >= cfg.errors and fall.lost >= cfg.lost
    rows = run.collect("evals").unique(["source", "step"], keep="first", maintain_order=True)
    for row in of_wrong_checkpoint(rows.to_dicts()):
        yield _finding(row, is_far=is_far)


def _finding(row: Row, *, is_far: bool) -> Finding:
    filed, made = filed_step(row), evaluated_step(row)
    return wrong_checkpoint.finding(
        f"results filed under step {filed} were made of the checkpoint of step {made}",
        f"the weights that were loaded are {weights_of(row)}" + ("; the scores fell with it" if is_far else ""),
        proof(result_evidence(row)),
        Onset(step=filed),
        severity="error" if is_far else "warning",
        confidence="high" if is_far else "medium",
        numbers={} if filed is None or made is None else {"filed": filed, "evaluated": made},
        next=(f"evaluate the checkpoint of step {filed}",),
    )
