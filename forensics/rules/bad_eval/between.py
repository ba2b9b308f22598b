"""Two evaluations of one task inside a run that cannot be put in one curve, or differ without a reason."""

from __future__ import annotations

from math import hypot

from forensics.analyses.evals.causes import diagnosed
from forensics.analyses.evals.results import Row, courses
from forensics.analyses.evals.settings import compared
from forensics.rules.bad_eval._results import NEEDS, following, name_of, result_evidence
from forensics.rules.kit import Findings, Onset, Run, Struct, proof, rule

_MOST = 20_000


@rule("EVL014 eval-settings-change", NEEDS, confidence="high", cause="eval_settings_change", causal="context")
def settings_change(run: Run) -> Findings:
    """Report the first pair of results with unequal settings, and how many tasks have such."""
    unlike = [(a, b, found) for a, b in following(courses(run))[:_MOST] if (found := compared(a, b).blocks)]
    fallen = diagnosed(run)
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


class Unexplained(Struct, frozen=True):
    """Threshold of EVL018, in joint standard errors."""

    errors: float = 5.0


@rule("EVL018 eval-unexplained", NEEDS, severity="warning", confidence="medium", cause="cause_not_recorded")
def unexplained(run: Run, cfg: Unexplained) -> Findings:
    """Report the pair of equal evaluations that are furthest apart."""
    if diagnosed(run) is not None:
        return
    named = [(a, b) for a, b in following(courses(run))[:_MOST] if a["model"] and a["source"] != b["source"]]
    far = [(z, a, b) for a, b in named if (z := _apart(a, b)) > cfg.errors]
    alike = [(z, a, b) for z, a, b in far if (found := compared(a, b)).same_model and not found.blocks]
    if not alike:
        return
    errors, before, after = max(alike, key=lambda item: item[0])
    care = compared(before, after).care
    yield unexplained.finding(
        f"{name_of(after)} is {after['value']:.4g} and was {before['value']:.4g}; nothing recorded explains it",
        f"{errors:.1f} standard errors apart" + (f"; {'; '.join(u.words for u in care[:4])}" if care else ""),
        proof(result_evidence(after), result_evidence(before)),
        numbers={"errors": errors, "pairs": len(alike)},
    )


def _apart(a: Row, b: Row) -> float:
    if a["stderr"] is None or b["stderr"] is None or not hypot(a["stderr"], b["stderr"]) > 0:
        return 0.0
    return abs(a["value"] - b["value"]) / hypot(a["stderr"], b["stderr"])
