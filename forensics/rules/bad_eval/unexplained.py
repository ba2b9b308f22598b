"""EVL018 eval-unexplained: one and the same recorded evaluation gave two values far beyond their errors.

What it detects: two results of one model and one step, with settings recorded as equal, that differ by more than five
standard errors.

Why it matters: something that is not recorded decides the score: library or kernel versions, the environment, code
loaded with the model. No comparison with another run is safe until it is found.

How it decides: model, step, revision and hash of the model, task version, few-shot examples, limit, prompt and decoding
are all equal as far as they are stated; the values differ by more than five joint standard errors. A score that fell is
told by EVL013.

What else looks like this: weights that were replaced under the same name.

What to do next: record the output of `pip freeze` and the GPU's type with each evaluation; evaluate twice in one
environment: if the values agree there, bisect the versions.

References: none; the threshold of five errors leaves chance out of the question for any number of tasks.

Example:
    ```evals source,line,task,metric,value,stderr,model,step
    a.json,7,arc_easy,acc,0.42,0.01,tiny,1000
    b.json,7,arc_easy,acc,0.55,0.01,tiny,1000
    ```
    => EVL018 warning confidence=medium step=1000 cause=cause_not_recorded errors=9.192 pairs=1
Not this:
    ```evals source,line,task,metric,value,stderr,model,step
    a.json,7,arc_easy,acc,0.55,0.01,tiny,1000
    b.json,7,arc_easy,acc,0.54,0.01,tiny,1000
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot

from forensics.analyses.evals.causes import diagnosed
from forensics.analyses.evals.results import Row, courses
from forensics.analyses.evals.settings import compared
from forensics.rules.bad_eval._results import following, name_of, result_evidence
from forensics.rules.kit import Findings, Onset, Run, proof, rule

_MOST = 20_000


@dataclass(frozen=True, slots=True)
class Config:
    """Threshold of EVL018, in joint standard errors."""

    errors: float = 5.0


@rule(
    "bad_eval",
    needs=("evals", "eval_samples", "facts", "metrics"),
    config=Config,
    severity="warning",
    confidence="medium",
    cause="cause_not_recorded",
)
def unexplained(run: Run, cfg: Config) -> Findings:
    """Report the pair of equal evaluations that lies furthest apart."""
    if run.derived(diagnosed) is not None:
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
        Onset(step=after["step"]),
        numbers={"errors": errors, "pairs": len(alike)},
    )


def _apart(a: Row, b: Row) -> float:
    if a["stderr"] is None or b["stderr"] is None or not hypot(a["stderr"], b["stderr"]) > 0:
        return 0.0
    return abs(a["value"] - b["value"]) / hypot(a["stderr"], b["stderr"])
