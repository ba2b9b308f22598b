"""SLO004 two-step-times: steps take one of two clearly different times.

What it detects: two modes of the time per step, mixed all along the run.

Why it matters: the mean hides it: half of the time lost to the slow mode may be padding, recompilation or a slow
loader worker.

How it decides: Otsu's split of the log times: the modes are 4.5 of their own deviations and 15 % apart, and both hold
a tenth of the steps. Always a note: batches of two lengths look the same.

What else looks like this: data of mixed length, which is no fault; gradient accumulation.

What to do next: log tokens per step, and look whether the slow steps hold more of them.

References: Otsu, "A Threshold Selection Method from Gray-Level Histograms" (1979).

Example:
    ```metrics
    step: 1..60
    step_time: 0.5009 0.8918 0.5013 0.4972 0.5032 0.8844 0.501 0.8978 0.8907 0.4991 0.5017 0.9 0.9225 0.5057 0.8922
        0.8999 0.8928 0.8905 0.8978 0.5023 0.4985 0.9025 0.8876 0.8905 0.4962 0.8933 0.4985 0.495 0.5002 0.5062 0.8916
        0.5024 0.4925 0.5076 0.8955 0.5006 0.5068 0.4943 0.4979 0.4991 0.9097 0.9123 0.9152 0.9109 0.9025 0.4979
        0.5064 0.4895 0.5084 0.5019 0.5066 0.5052 0.8948 0.5058 0.9029 0.5034 0.4963 0.9053 0.8967 0.501
    ```
    => SLO004 info confidence=medium step=2 cause=two_step_times causal=context slow_share=0.4407 fast_s=0.5009
Not this: one mode
    ```metrics
    step: 1..55
    step_time: 0.5103 0.4983 0.4999 0.4941 0.4939 0.4846 0.4945 0.4894 0.4859 0.5015 0.5046 0.4966 0.5139 0.5095
        0.5106 0.494 0.4853 0.5056 0.5031 0.5073 0.5042 0.5128 0.4971 0.5067 0.4911 0.4774 0.4956 0.5152 0.4835 0.5103
        0.4933 0.496 0.5004 0.5021 0.4904 0.5013 0.5045 0.5084 0.4925 0.5158 0.5194 0.5247 0.4868 0.5017 0.4818 0.5038
        0.5056 0.4886 0.4844 0.5019 0.5063 0.4921 0.4974 0.4754 0.493
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.pace.account import Paced, paced
from forensics.rules.kit import Finding, Findings, Onset, Run, proof, rule
from forensics.stats.changes import Modes, modes_of


@dataclass(frozen=True, slots=True)
class TwoTimes:
    """Thresholds of SLO004: the share of slow steps must lie between `least` and `most`, of `records` at least."""

    least: float = 0.1
    most: float = 0.9
    records: int = 50


@rule(
    "slowdown",
    needs=("metrics", "checkpoints", "progress"),
    config=TwoTimes,
    severity="info",
    confidence="medium",
    cause="two_step_times",
    causal="context",
)
def two_step_times(run: Run, cfg: TwoTimes) -> Findings:
    """Find the first clock with two clear modes over the whole run."""
    for one in paced(run):
        found = modes_of(one.steady.logs) if len(one.steady) >= cfg.records and one.change is None else None
        if found is not None and cfg.least <= found.slow <= cfg.most and _mixed(one, found):
            yield _finding(one, found)
            return


def _mixed(one: Paced, found: Modes) -> bool:
    """Whether fast and slow steps come in turn, not one after the other."""
    slow = one.steady.logs > found.cut
    turns = int((slow[1:] != slow[:-1]).sum())
    return turns >= 0.5 * 2 * found.slow * (1 - found.slow) * len(slow)


def _finding(one: Paced, found: Modes) -> Finding:
    slow = one.steady.logs > found.cut
    first, fast = one.row(int(slow.argmax())), one.row(int((~slow).argmax()))
    high, low = (float(one.steady.seconds[part].mean()) for part in (slow, ~slow))
    return two_step_times.finding(
        f"a {one.clock.unit} takes {low:.3g} s or {high:.3g} s: {100 * found.slow:.0f} % are slow",
        "the two times are more than four of their own deviations apart, and come in turn all along",
        proof(first, fast),
        Onset(step=one.at(int(slow.argmax())), rank=one.clock.rank),
        numbers={"slow_share": found.slow, "fast_s": low, "slow_s": high},
    )
