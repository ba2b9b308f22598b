"""EVL012 eval-at-chance: the model answers tasks of multiple choice no better than by guessing.

What it detects: scores that cannot be told from those of a coin, in all tasks of which the number of choices is known.

Why it matters: such a model has learnt nothing that these tasks ask for, or it is not the model, tokenizer or prompt
that one thinks it is; differences between two such results are noise.

How it decides: at least three tasks with a known level of chance; in each the score lies within two standard errors of
it, or below. One task above chance clears the result.

What else looks like this: a small or barely trained model on hard tasks, for which chance is what is to be expected.

What to do next: evaluate a known model with the same command: if it is at chance too, the prompt or the harness is at
fault; else compare the tokenizer with the one of training and look at a few generations.

References: the number of choices of each task, as its publication gives it.

Example:
    ```evals line,task,metric,value,stderr
    7,arc_easy,acc,0.251,0.009
    11,piqa,acc,0.497,0.012
    15,winogrande,acc,0.508,0.014
    ```
    => EVL012 warning confidence=medium cause=at_chance causal=symptom value=0.2510 chance=0.2500
Not this:
    ```evals line,task,metric,value,stderr
    7,arc_easy,acc,0.43,0.01
    11,piqa,acc,0.497,0.012
    15,winogrande,acc,0.508,0.014
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from forensics.analyses.evals.results import Row, chance_of, courses
from forensics.rules.bad_eval._results import result_evidence
from forensics.rules.kit import EvidenceRole, Findings, Onset, Run, rule

_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of EVL012: tasks that must be known, and the standard errors within which a score is chance (5 %)."""

    tasks: int = 3
    errors: float = 2.0


@rule(
    "bad_eval",
    needs=("evals",),
    config=Config,
    severity="warning",
    confidence="medium",
    cause="at_chance",
    causal="symptom",
)
def at_chance(run: Run, cfg: Config) -> Findings:
    """Report the last results when every task of known chance is at it."""
    last = [rows[-1] for key, rows in courses(run).items() if key[1] in ("acc", "acc_norm")]
    known = [(row, chance) for row in last if (chance := chance_of(row["task"])) is not None]
    tasks = {row["task"] for row, _ in known}
    if len(tasks) < cfg.tasks or not all(_is_chance(row, chance, cfg) for row, chance in known):
        return
    row, chance = known[0]
    yield at_chance.finding(
        f"all {len(tasks)} tasks with a known chance level score at chance: {row['task']} {row['value']:.3g},"
        f" chance {chance:g}",
        "no score is more than two standard errors above guessing",
        tuple(
            result_evidence(r, EvidenceRole.RELATED if n else EvidenceRole.PRIMARY)
            for n, (r, _) in enumerate(known[:_SHOWN])
        ),
        Onset(step=row["step"]),
        numbers={"tasks": len(tasks), "value": row["value"], "chance": chance},
    )


def _is_chance(row: Row, chance: float, cfg: Config) -> bool:
    error = row["stderr"]
    if error is None:
        if not row["n"]:
            return False
        error = sqrt(chance * (1 - chance) / row["n"])
    return row["value"] - chance <= cfg.errors * error
