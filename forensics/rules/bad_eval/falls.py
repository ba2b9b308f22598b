"""An evaluation far below the one before it, and the setting that changed with it."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.analyses.evals.causes import Diagnosed, diagnosed, words_of
from forensics.rules.bad_eval._results import NEEDS, name_of, result_evidence
from forensics.rules.kit import Evidence, Findings, Locator, Onset, Run, Struct, proof, rule
from forensics.values import replace

_SHOWN = 3
_ADVICE = {
    "labels": "give the documents their earlier labels and evaluate {again}: {what}",
    "decoding": "evaluate {again} with the decoding of before, in the generation settings: {what}",
    "tokenizer": "evaluate {again} with the tokenizer beside its weights, and compare the vocabulary: {what}",
    "prompt": "evaluate {again} with the prompt and chat template of before: {what}",
    "few-shot": "evaluate {again} with as many few-shot examples as before: {what}",
    "documents": "evaluate {again} on the earlier documents: {what}",
    "model mode": "evaluate {again} with the model in eval mode, dropout off: {what}",
}
_COMPARE = (
    "evaluate {again} once more, just as {before} was, and compare what the results do not record: order of documents "
    "and labels, tokenizer, prompt, dropout (model.eval()), weights"
)


class Fallen(Struct, frozen=True):
    """Thresholds of EVL013: standard errors, and the share of the score before, from which on a fall is an error."""

    errors: float = 5.0
    lost: float = 0.2


@rule("EVL013 eval-falls", NEEDS)
def falls(run: Run, cfg: Fallen) -> Findings:
    """Report the first evaluation whose scores fell, and the setting that changed with it."""
    found = diagnosed(run)
    if found is None or found.is_of_wrong_weights:
        return
    fall, changed = found.fall, found.changed
    test = fall.tasks[0]
    before, after = test.before, test.after
    more = f"; {len(fall.tasks)} results fell like that" if len(fall.tasks) > 1 else ""
    said = f"with {changed[0].family} changed: {words_of(changed)}" if changed else "and no recorded setting differs"
    is_far = fall.errors >= cfg.errors and fall.lost >= cfg.lost
    course = "; the training loss did not rise" if fall.losses else ""
    beside = "; another task got better at that evaluation" if found.is_traded else ""
    further = (
        "keep the settings of the evaluation in one file, and its hash in the results"
        if changed
        else "compare with a good run: forensics diff GOOD BAD --section config --section evals"
    )
    families = ", ".join(sorted({one.family for one in changed}))
    yield falls.finding(
        f"{name_of(after)} fell from {before['value']:.4g}{_at(before['step'])} to {after['value']:.4g}"
        f"{_at(fall.step)}{more}",
        f"the fall is {fall.errors:.1f} standard errors, {said}{course}{beside}",
        proof(replace(result_evidence(after), apart=families), result_evidence(before), *_stated(found), *fall.losses),
        Onset(step=fall.step, step_lo=fall.step_before),
        severity="error" if is_far else "warning",
        confidence="high" if changed and is_far else "medium",
        cause=found.cause,
        numbers={"best": before["value"], "last": after["value"], "errors": test.errors, "tasks": len(fall.tasks)},
        likely=_likely(found),
        next=(_first_action(found), further),
    )


def _at(step: int | None) -> str:
    return "" if step is None else f" at step {step}"


def _stated(found: Diagnosed) -> Iterator[Evidence]:
    """Where the setting that changed is stated, on both sides."""
    for one in found.changed[:1]:
        for place, value in ((one.cand_place, one.cand), (one.base_place, one.base)):
            source, _, line = place.rpartition(":")
            at = int(line) if source and line.isdigit() else None
            yield Evidence(source if at else place, Locator(line=at), f"{one.name} = {value}")


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
        advice = _ADVICE.get(found.changed[0].family, "evaluate {again} with the earlier setting: {what}")
        own = [one for one in found.changed if one.family == found.changed[0].family]
        back = "; ".join(f"{one.name} {one.base}, not {one.cand}" for one in own[:_SHOWN])
        return advice.format(again=again, what=back)
    if found.is_traded or not found.fall.is_abrupt:
        return f"use the checkpoint of step {fall.tasks[0].before['step']}, or evaluate both again with one command"
    return _COMPARE.format(again=again, before=before)
