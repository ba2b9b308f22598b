"""EVL015 eval-of-another-step: results are filed under one step and were made of another.

What it detects: an evaluation whose model arguments name another step than the file or folder of its results.

Why it matters: the score is read as that of a checkpoint which was never evaluated.

How it decides: the step in the model's revision or path and the step in the name of the file are both there and differ.

What else looks like this: a folder that is named for the step at which a series of evaluations began.

What to do next: evaluate the checkpoint that the file is named for; give the path of the results from the same variable
as the path of the checkpoint.

References: lm-evaluation-harness, `model_args` (`pretrained`, `revision`, `peft`).

Example:
    ```evals source,line,task,metric,value,stderr,step,settings
    evals/step2000/results.json,7,arc_easy,acc,0.55,0.01,1000,"{""model_args.pretrained"":""out/checkpoint-1000""}"
    ```
    => EVL015 warning confidence=medium step=1000 cause=wrong_checkpoint filed=2000 evaluated=1000
Not this:
    ```evals source,line,task,metric,value,stderr,step,settings
    evals/step2000/results.json,7,arc_easy,acc,0.55,0.01,2000,"{""model_args.pretrained"":""out/checkpoint-2000""}"
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator

from forensics.ingest._eval_step import step_in
from forensics.model import Causal, Confidence, Finding, Onset, Severity, Shape
from forensics.registry import rule
from forensics.rules.bad_eval._results import result_evidence
from forensics.signals.evals import Row, settings_of
from forensics.store.run import Run

_ARGUMENTS = ("revision", "peft", "pretrained", "model", "path", "model_name")


@rule("EVL015", shape=Shape.BAD_EVAL, needs=("evals",))
def wrong_checkpoint(run: Run, _cfg: None = None) -> Iterator[Finding]:
    """Report each file of results whose name and model name different steps."""
    rows = run.collect("evals").unique("source", keep="first", maintain_order=True)
    for row in rows.iter_rows(named=True):
        filed, model = step_in([row["source"].rpartition("/")[2], row["source"]]), _step_of_model(row)
        if filed is not None and model is not None and filed != model:
            yield _finding(row, filed, model)


def _step_of_model(row: Row) -> int | None:
    settings = settings_of(row)
    return step_in(str(settings[key]) for name in _ARGUMENTS if (key := f"model_args.{name}") in settings)


def _finding(row: Row, filed: int, model: int) -> Finding:
    return Finding(
        rule="EVL015",
        shape=Shape.BAD_EVAL,
        severity=Severity.WARNING,
        confidence=Confidence.MEDIUM,
        title=f"results filed under step {filed} were made of the checkpoint of step {model}",
        because="the arguments of the model name the checkpoint that was loaded",
        evidence=(result_evidence(row),),
        onset=Onset(step=model),
        cause="wrong_checkpoint",
        causal=Causal.ROOT,
        numbers={"filed": filed, "evaluated": model},
        likely=("the path of the checkpoint was not changed with that of the results",),
        next=(f"evaluate the checkpoint of step {filed}",),
    )
