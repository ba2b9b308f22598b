"""SLO031 step-times-too-coarse: step times are printed with too few digits to see a slowdown.

What it detects: a clock whose printing unit is more than half of the smallest slowdown looked for, with no finer one
beside it.

Why it matters: that no slowdown was found then means nothing.

How it decides: the smallest difference of two values, where few values come again and again, over their median; for
an average since the start that was taken apart, its unit times the number of steps averaged.

What else looks like this: nothing: it is a statement about the log.

What to do next: print more digits.

References: Widrow and Kollar, "Quantization Noise" (2008).

Example:
    ```metrics
    step: 1..40
    step_time: 0.3 0.4 0.3 0.4 0.3*6 0.4 0.3*4 0.4 0.3*4 0.4 0.3 0.3 0.4 0.3 0.3 0.4 0.3*7 0.4 0.4 0.3*4
    ```
    => SLO031 info confidence=low cause=coarse_times causal=context resolution=0.3333 records=38
Not this: enough digits
    ```metrics
    step: 1..30
    step_time: 0.5048 0.4946 0.4994 0.5013 0.5087 0.4952 0.4973 0.4961 0.5044 0.492 0.4989 0.4934 0.4982 0.5038 0.4972
        0.5035 0.4976 0.4997 0.4992 0.4955 0.5021 0.5032 0.4959 0.5034 0.5005 0.4978 0.5007 0.5041 0.5037 0.5075
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.pace.account import COARSE, Paced, paced
from forensics.rules.kit import Finding, Findings, Run, proof, rule


@dataclass(frozen=True, slots=True)
class Coarse:
    """Thresholds of SLO031: the printing unit over the median, and the fewest records."""

    unit: float = COARSE
    records: int = 20


@rule(
    "slowdown",
    needs=("metrics", "checkpoints", "progress"),
    config=Coarse,
    severity="info",
    confidence="low",
    cause="coarse_times",
    causal="context",
)
def step_times_too_coarse(run: Run, cfg: Coarse) -> Findings:
    """Tell the first clock that says nothing about slowdowns, where no finer one of its source does."""
    for one in paced(run):
        if one.change is None and one.steady.resolution > cfg.unit and len(one.steady) >= cfg.records:
            yield _finding(one)
            return


def _finding(one: Paced) -> Finding:
    share = 100 * one.steady.resolution
    return step_times_too_coarse.finding(
        f"{one.clock.name} is printed in steps of {share:.0f} % of a step: smaller slowdowns cannot be seen",
        "no change was found, which says nothing about changes below the printing unit"
        + "".join(f"; {note}" for note in one.clock.notes),
        proof(one.row(0)),
        numbers={"resolution": one.steady.resolution, "records": len(one.steady)},
    )
