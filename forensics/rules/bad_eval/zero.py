"""Evaluations that score zero while a model is trained."""

from __future__ import annotations

from forensics.analyses.evals.curves import EvalCurve, eval_curves
from forensics.analyses.evals.results import courses, higher_is_better
from forensics.analyses.learning.objective import reinforced
from forensics.case.curves.loss import curves
from forensics.case.errors.coded import events_telling
from forensics.knowledge.errors import telling
from forensics.knowledge.scores import is_of_overlap
from forensics.rules.bad_eval._results import result_evidence
from forensics.rules.kit import Finding, Findings, Onset, Run, Struct, event_evidence, proof, rule


class Zero(Struct, frozen=True):
    """How many evaluations in a row must score zero, and from how many on it is more than a beginning.

    Fewer than `many` evaluations of fewer records of a training loss are those of one that has just begun.
    `tasks`: results of evaluations alone that must all be zero, an overlap of words among them.
    """

    evaluations: int = 3
    many: int = 5
    tasks: int = 2


@rule("EVL028 score-zero", "metrics events evals", severity="warning", cause="score_zero")
def score_zero(run: Run, cfg: Zero) -> Findings:
    """Find scores that are zero in every evaluation, by the numbers or by the table that pycocotools prints."""
    found = None if reinforced(run) else _of_numbers(run, cfg) or _of_tables(run, cfg) or _of_results(run, cfg)
    if found is not None:
        yield found


def _of_numbers(run: Run, cfg: Zero) -> Finding | None:
    scores = [one for one in eval_curves(run) if one.higher]
    if not scores or any(bool(one.values.any()) or len(one.values) < cfg.evaluations for one in scores):
        return None
    one: EvalCurve = max(scores, key=lambda curve: len(curve.values))
    if max(len(one.values), *(len(loss) for loss in curves(run, "loss")), 0) < cfg.many:
        return None  # a training that has just begun
    return score_zero.finding(
        f"{one.name} is 0 in every one of {len(one.values)} evaluations",
        "no other score of the evaluations is above zero",
        proof(one.row(0), one.row(-1)),
        confidence="medium" if len(one.values) >= cfg.many else "low",
        numbers={"evaluations": len(one.values)},
    )


def _of_results(run: Run, cfg: Zero) -> Finding | None:
    """Results that are all zero, also where a word in common with the right answer would count."""
    last = [rows[-1] for rows in courses(run).values() if higher_is_better(rows[-1])]
    shared = [row for row in last if is_of_overlap(str(row["metric"]))]
    tasks = {row["task"] for row in last}
    if not shared or len(tasks) < cfg.tasks or any(row["value"] for row in last):
        return None
    row = shared[0]
    return score_zero.finding(
        f"all {len(last)} results of {len(tasks)} tasks are 0, as the {row['metric']} of {row['task']}",
        "one word in common with one right answer would count: nothing of what the model answers is scored",
        proof(*(result_evidence(one) for one in (row, *(one for one in last if one is not row))[:3])),
        Onset(step=row["step"]),
        confidence="medium",
        numbers={"tasks": len(tasks)},
        next=("print ten answers as the scorer sees them: empty ones, cut ones, or words before the answer",),
    )


def _of_tables(run: Run, cfg: Zero) -> Finding | None:
    """Tables that say an average precision of zero, where none says more."""
    events = events_telling(run, "score_zero", "score_above_zero", order=("source", "seq"))
    if events.is_empty() or not telling("score_above_zero").isdisjoint(events["code"]):
        return None
    first, last = events.row(0, named=True), events.row(-1, named=True)
    return score_zero.finding(
        f"the average precision is 0 in {events.height} evaluation" + ("s" if events.height > 1 else ""),
        "no evaluation of the log is above zero",
        proof(event_evidence(first), event_evidence(last) if events.height > 1 else None),
        confidence="medium" if events.height >= cfg.many else "low",
        numbers={"evaluations": events.height},
    )
