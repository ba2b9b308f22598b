"""EVL013 eval-falls: an evaluation scores far worse than one before it although the training did not get worse.

What it detects: scores that fell at one evaluation by more than their noise, and the setting of the evaluation that
changed at that place.

Why it matters: the loss hides it. Most often the model is sound and the evaluation is not: another decoding, prompt,
tokenizer, order of the labels, or a model that was left in training mode. Else the model forgets, and the last
checkpoint is not the best.

How it decides: each task is compared with its best result before, and the mean of all tasks with the evaluation
before. The fall must be one that chance gives in less than one of a thousand cases over all results (Bonferroni), and
of a task eight points and 15 % of its score, of the mean five points and a tenth: checkpoints of sound runs differ by
less. Printed errors count, else those of the documents, and a share of which neither is stated is taken to be of
thirty. A training loss that rose by a tenth explains it. The cause is the first of these that changed and can act on
the task: labels, decoding, tokenizer, prompt, few-shot examples, documents, mode of the model, precision, version,
batch. Where none did and another task got better by as much, the model forgets. What came before may be the model of
step 0, whatever its name. It is an error where the fall is five errors and a fifth of the score.

What else looks like this: fine-tuning towards another goal, where a fall elsewhere is the known price; other documents
in each evaluation, which differ by chance only.

What to do next: evaluate the fallen checkpoint again with the setting of the one before it. If the score is still low,
use the checkpoint of the better step, and look at what the data gave between the two.

References: Miller 2024, "Adding Error Bars to Evals"; McCloskey and Cohen 1989 (catastrophic interference).

Example: sampling at a high temperature
    ```evals source,line,task,metric,value,n,step,settings
    a.json,7,sums,exact_match,0.61,400,1000,"{""temperature"":0.0}"
    b.json,7,sums,exact_match,0.22,400,2000,"{""temperature"":1.5}"
    ```
    => EVL013 error confidence=high step=2000 step_lo=1000 cause=eval_settings_change best=0.6100 last=0.2200
Example: nothing that is recorded differs
    ```evals source,line,task,metric,value,stderr,step
    a.json,7,arc_easy,acc,0.61,0.010,1000
    b.json,7,arc_easy,acc,0.50,0.010,2000
    ```
    ```metrics
    step: 980 990 1000 1980 1990 2000
    loss: 2.31 2.30 2.29 2.12 2.11 2.10
    ```
    => EVL013 warning confidence=medium step=2000 step_lo=1000 cause=cause_not_recorded best=0.6100 errors=7.778
Not this: within what the documents give
    ```evals source,line,task,metric,value,n,step
    a.json,7,arc_easy,acc,0.60,40,1000
    b.json,7,arc_easy,acc,0.45,40,2000
    ```
    => nothing
Not this: the training got worse, too
    ```evals source,line,task,metric,value,stderr,step
    a.json,7,arc_easy,acc,0.61,0.010,1000
    b.json,7,arc_easy,acc,0.30,0.010,2000
    ```
    ```metrics
    step: 990 1000 1990 2000
    loss: 2.30 2.29 6.11 6.10
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from forensics.analyses.evals.causes import Diagnosed, diagnosed, words_of
from forensics.analyses.evals.falls import Fall
from forensics.rules.bad_eval._results import name_of, result_evidence
from forensics.rules.kit import Evidence, EvidenceRole, Finding, Findings, Locator, Onset, Run, proof, rule

_SHOWN = 3
_ADVICE = {
    "labels": "give the documents the labels of before and evaluate {again}: {what}",
    "decoding": "evaluate {again} with the decoding of before, in the generation settings: {what}",
    "tokenizer": "evaluate {again} with the tokenizer beside its weights, and compare the vocabulary: {what}",
    "prompt": "evaluate {again} with the prompt and chat template of before: {what}",
    "few-shot": "evaluate {again} with as many few-shot examples as before: {what}",
    "documents": "evaluate {again} on the documents of before: {what}",
    "model mode": "evaluate {again} with the model in eval mode, dropout off: {what}",
}
_COMPARE = (
    "evaluate {again} once more, just as {before} was, and compare what the results do not record: order of documents "
    "and labels, tokenizer, prompt, dropout (model.eval()), weights"
)


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of EVL013: standard errors, and the share of the score before, from which on a fall is an error."""

    errors: float = 5.0
    lost: float = 0.2


@rule("bad_eval", needs=("evals", "eval_samples", "facts", "metrics"), config=Config)
def falls(run: Run, cfg: Config) -> Findings:
    """Report the first evaluation whose scores fell, and the setting that changed with it."""
    found = run.derived(diagnosed)
    if found is not None and not found.is_of_wrong_weights:
        yield _finding(found, cfg or Config())


def _finding(found: Diagnosed, cfg: Config) -> Finding:
    fall, changed = found.fall, found.changed
    test = fall.tasks[0]
    before, after = test.before, test.after
    more = f"; {len(fall.tasks)} results fell like that" if len(fall.tasks) > 1 else ""
    said = f"with {changed[0].family} changed: {words_of(changed)}" if changed else "and no recorded setting differs"
    is_far = fall.errors >= cfg.errors and fall.lost >= cfg.lost
    return falls.finding(
        f"{name_of(after)} fell from {before['value']:.4g}{_at(before['step'])} to {after['value']:.4g}"
        f"{_at(fall.step)}{more}",
        f"the fall is {fall.errors:.1f} standard errors, {said}" + _training(fall) + _beside(found),
        proof(result_evidence(after), result_evidence(before), *_stated(found), *fall.losses),
        Onset(step=fall.step, step_lo=fall.step_before),
        severity="error" if is_far else "warning",
        confidence="high" if changed and is_far else "medium",
        cause=found.cause,
        numbers={"best": before["value"], "last": after["value"], "errors": test.errors, "tasks": len(fall.tasks)},
        likely=_likely(found),
        next=(_first_action(found), *_further(found)),
    )


def _at(step: int | None) -> str:
    return "" if step is None else f" at step {step}"


def _training(fall: Fall) -> str:
    return "; the training loss did not rise" if fall.losses else ""


def _beside(found: Diagnosed) -> str:
    return "; another task got better at that evaluation" if found.is_traded else ""


def _stated(found: Diagnosed) -> Iterator[Evidence]:
    """Where the setting that changed is stated, on both sides."""
    for one in found.changed[:1]:
        for place, value, role in (
            (one.cand_place, one.cand, EvidenceRole.RELATED),
            (one.base_place, one.base, EvidenceRole.RELATED),
        ):
            source, _, line = place.rpartition(":")
            at = int(line) if source and line.isdigit() else None
            yield Evidence(
                source=source if at else place, locator=Locator(line=at), quote=f"{one.name} = {value}", role=role
            )


def _likely(found: Diagnosed) -> tuple[str, ...]:
    if found.changed:
        return tuple(f"{one.family}: {one.words}" for one in found.changed[:_SHOWN])
    if found.is_traded or not found.fall.is_abrupt:
        return ("the model forgets: the data mix or the schedule changed", "overfitting, or forgetting in fine-tuning")
    return (
        "labels or documents in another order, another tokenizer or prompt, or dropout left on in the evaluation",
        "weights that were not loaded, or of another checkpoint",
    )


def _first_action(found: Diagnosed) -> str:
    fall = found.fall
    again = "the fallen checkpoint" if fall.step is None else f"the checkpoint of step {fall.step}"
    before = "the evaluation before" if fall.step_before in (None, fall.step) else f"the one of step {fall.step_before}"
    if found.changed:
        advice = _ADVICE.get(found.changed[0].family, "evaluate {again} with the setting of before: {what}")
        own = [one for one in found.changed if one.family == found.changed[0].family]
        back = "; ".join(f"{one.name} {one.base}, not {one.cand}" for one in own[:_SHOWN])
        return advice.format(again=again, what=back)
    if found.is_traded or not found.fall.is_abrupt:
        return f"use the checkpoint of step {fall.tasks[0].before['step']}, or evaluate both again with one command"
    return _COMPARE.format(again=again, before=before)


def _further(found: Diagnosed) -> tuple[str, ...]:
    if found.changed:
        return ("keep the settings of the evaluation in one file, and its hash in the results",)
    return ("compare with a good run: forensics diff GOOD BAD --section config --section evals",)
