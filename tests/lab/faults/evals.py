"""Evaluations: the model learnt well, and its results say otherwise."""

from __future__ import annotations

import math
from typing import Any

from faults.row import SOFT, Facts, Fault, needs, of

#: A wrong evaluation shows when its mean score is lower by this share of a right one and by so many standard errors.
FALL, ERRORS = 0.1, 3.0
#: A right evaluation of a model that did not learn proves nothing.
LEARNT = 0.5


def _error(one: dict[str, Any], other: dict[str, Any]) -> float:
    """The standard error of the difference of two mean scores of right and wrong answers."""
    return math.sqrt(sum(max(of["score"] * (1 - of["score"]), 1e-3) / of["answers"] for of in (one, other)))


def falls(_job: Any, facts: Facts, _codes: list[int]) -> str:
    """A wrong evaluation shows when it stands beside a right one and scores less than it should have."""
    made = of(facts, "scored")
    right, wrong = [one for one in made if not one["wrong"]], [one for one in made if one["wrong"]]
    if not right or not wrong:
        return f"{len(right)} right and {len(wrong)} wrong evaluations: one of each is needed"
    best = max(right, key=lambda one: one["score"])
    if min(best["score"], wrong[0]["expected"]) < LEARNT:
        return "the model did not learn what is asked of it"
    fallen = min(best["score"], wrong[0]["expected"]) - wrong[0]["score"]
    return "" if fallen > max(FALL, ERRORS * _error(best, wrong[0])) else f"the score fell by no more than {fallen:.2f}"


def no_fall(_job: Any, facts: Facts, _codes: list[int]) -> str:
    """Nothing is wrong when no later score is lower than an earlier one by more than chance explains."""
    made = of(facts, "scored")
    if not made:
        return "nothing was evaluated"
    best = max(made, key=lambda one: one["score"])
    fallen = best["score"] - made[-1]["score"]
    return "" if fallen <= ERRORS * _error(best, made[-1]) else f"the score fell by {fallen:.2f}"


_BEGINS = (0.5, 0.7)
_CHANGED = ("eval_settings_change", "evaluations_unlike", "worse_than_baseline", "eval_falls")
#: Where nothing on disk but the scores says it.
_UNTOLD = ("eval_falls", "worse_than_baseline", "cause_not_recorded")


def _row(name: str, causes: tuple[str, ...], says: tuple[str, ...], **more: Any) -> Fault:
    return Fault(
        name,
        SOFT,
        "bad_eval",
        causes,
        says,
        needs("before"),
        begins=_BEGINS,
        leaves=("evals",),
        ends="done",
        shown=falls,
        **more,
    )


ROWS = (
    _row("eval-decoding", _CHANGED, ("decod", "sampl", "temperature", "setting", "generation"), numbers={"temperature": (1.6, 2.6)}),
    _row("eval-tokenizer", ("tokenizer_mismatch", *_UNTOLD, "at_chance"), ("tokenizer", "vocabulary")),
    _row("eval-template", _CHANGED, ("template", "prompt", "setting")),
    _row("eval-dropout", _UNTOLD, ("eval", "dropout"), numbers={"dropout": (0.55, 0.65)}),
    _row("eval-checkpoint", ("wrong_checkpoint", "earlier_checkpoint", "identical_results"), ("checkpoint",), onset=False),
    _row("eval-order", (*_UNTOLD, "at_chance", "labels_changed"), ("label", "order", "document", "answer", "evaluat")),
)  # fmt: skip
