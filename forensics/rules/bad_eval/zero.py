"""Evaluations that score zero while a model is trained."""

from __future__ import annotations

import numpy as np

from forensics.analyses.evals.curves import EvalCurve, eval_curves, training_scores
from forensics.analyses.evals.results import courses, higher_is_better
from forensics.analyses.learning.objective import reinforced
from forensics.case.curves.loss import curves
from forensics.case.errors.coded import events_telling
from forensics.knowledge.errors import telling
from forensics.knowledge.scores import is_of_overlap
from forensics.knowledge.vocabulary import stands_for
from forensics.rules.bad_eval._results import result_evidence
from forensics.rules.kit import Finding, Findings, Onset, Run, Struct, event_evidence, number, proof, rule


class Zero(Struct, frozen=True):
    """How many evaluations in a row must score zero, and from how many on it is more than a beginning.

    Fewer than `many` evaluations of fewer records of a training loss are those of one that has just begun.
    `tasks`: results of evaluations alone that must all be zero, an overlap of words among them. `rises`: the share of
    the whole by which no other score rises beside `many` zeros. `records`: so many of the training, which has no other.
    """

    evaluations: int = 3
    many: int = 5
    tasks: int = 2
    rises: float = 0.01
    records: int = 10


#: All of something, as a share or in percent.
_ALL = (1.0, 100.0)


@rule("EVL028 score-zero", "metrics events evals", severity="warning", cause="score_zero")
def score_zero(run: Run, cfg: Zero) -> Findings:
    """Find scores that are zero in every evaluation, by the numbers or by the table that pycocotools prints."""
    ways = () if reinforced(run) else (_of_numbers, _of_errors, _of_tables, _of_results)
    found = next((found for way in ways if (found := way(run, cfg)) is not None), None)
    if found is not None:
        yield found


def _of_numbers(run: Run, cfg: Zero) -> Finding | None:
    scores = [one for one in eval_curves(run) if one.higher]
    if not scores:
        return _of_training(run, cfg)
    zeros = [one for one in scores if not one.values.any() and len(one.values) >= cfg.evaluations]
    if not zeros:
        return None
    one: EvalCurve = max(zeros, key=lambda curve: len(curve.values))
    if max(len(one.values), *(len(loss) for loss in curves(run, "loss")), 0) < cfg.many:
        return None  # a training that has just begun
    alone = len(zeros) == len(scores)
    if not alone and (len(one.values) < cfg.many or any(_rise_of(other) >= cfg.rises for other in scores)):
        return None
    return score_zero.finding(
        f"{one.name} is 0 in every one of {len(one.values)} evaluations",
        "no other score of the evaluations is above zero" if alone else "no other score of the evaluations rises",
        proof(one.row(0), one.row(-1)),
        confidence="medium" if len(one.values) >= cfg.many else "low",
        numbers={"evaluations": len(one.values)},
    )


def _of_errors(run: Run, cfg: Zero) -> Finding | None:
    """An error rate of all: every word, or every letter, is wrong in each evaluation."""
    rates = (one for one in eval_curves(run) if not one.higher and stands_for("error_rate", one.name))
    whole = (one for one in rates if len(one.values) >= cfg.many and bool(np.isin(one.values, _ALL).all()))
    one = next(whole, None)
    if one is None:
        return None
    return score_zero.finding(
        f"{one.name} is {number(float(one.values[-1]))} in every one of {len(one.values)} evaluations",
        "an error rate of all: nothing that the model gives is right, as of empty outputs or another alphabet",
        proof(one.row(0), one.row(-1)),
        confidence="medium",
        numbers={"evaluations": len(one.values)},
    )


def _rise_of(score: EvalCurve) -> float:
    """By what share of the whole the best score lies above the first; one that only counts up does not rise."""
    values = score.values
    rise = float(values.max() - values[0]) / (100.0 if float(values.max()) > 1 else 1.0)
    return 0.0 if bool((np.diff(values) == 1).all()) else rise


def _of_training(run: Run, cfg: Zero) -> Finding | None:
    """Scores of the training that are all zero in many records, where nothing is evaluated."""
    scores = training_scores(run)
    if not scores or any(bool(one.values.any()) or len(one.values) < cfg.records for one in scores):
        return None
    one = scores[0]
    return score_zero.finding(
        f"{one.name} is 0 in every one of {len(one.values)} records",
        "no other score of the training is above zero: chance alone gets something right",
        proof(one.row(0), one.row(-1)),
        confidence="medium",
        numbers={"records": len(one.values)},
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
