"""SLO005 periodic-pauses: every so many steps one takes much longer, and together they cost much of the time.

What it detects: slow records that come at a fixed distance in steps.

Why it matters: they are no fault, but their cost is seldom known: an evaluation each hundred steps can double the
price of a run.

How it decides: the time that records at a save take beyond what others do is a warning from `saving` of the whole on,
after `saves` saves, or from `dear` on where a save takes as long as `long` steps, and an error from `half` on: then the
run saved longer than it trained. Else: records four deviations and a quarter above the moving median, at steps with a
common period: three or more, three quarters of those expected, and too many for chance (Chernoff bound below 0.001).
These are told from `least` of the time on; a warning from `unknown` on where neither a save nor an evaluation explains
them.

What else looks like this: batches that are longer at a fixed place of the epoch.

What to do next: compare the period with the intervals of evaluation, saving and logging in the configuration.

References: Chernoff, "A Measure of Asymptotic Efficiency" (1952), on the bound.

Example:
    ```metrics
    step: 1..90
    step_time: 0.5007 0.5008 0.508 0.4943 0.4889 0.5023 0.4971 0.5014 0.5036 2.503 0.5073 0.5068 0.4917 0.4997 0.5101
        0.498 0.5049 0.4997 0.4979 2.508 0.5052 0.4988 0.5046 0.4935 0.4964 0.5045 0.5002 0.4947 0.5023 2.5016 0.5065
        0.5048 0.4986 0.4976 0.4993 0.4989 0.5074 0.508 0.5068 2.5019 0.4988 0.5045 0.4983 0.5012 0.4917 0.4979 0.5073
        0.4949 0.4926 2.4992 0.5084 0.5073 0.4982 0.4976 0.4994 0.4954 0.5002 0.4985 0.4927 2.4971 0.4987 0.4957
        0.4944 0.5045 0.5096 0.4986 0.4979 0.5025 0.4989 2.4961 0.507 0.4948 0.4964 0.4967 0.4956 0.4988 0.5029 0.5073
        0.5033 2.5002 0.4938 0.4997 0.4953 0.4995 0.5049 0.501 0.4989 0.4962 0.4999 2.5006
    ```
    => SLO005 warning confidence=medium step=10 cause=periodic_pauses causal=context share=0.2879 period_steps=10
Not this: the same pauses are so short that they cost little
    ```metrics
    step: 1..40
    step_time: 0.4954 0.4975 0.5044 0.4918 0.4978 0.4942 0.5078 0.503 0.5026 0.702 0.5014 0.5015 0.4921 0.5013 0.503
        0.4929 0.5041 0.5033 0.4924 0.6976 0.4985 0.4974 0.502 0.4937 0.4989 0.5011 0.5036 0.5002 0.4988 0.7035 0.4901
        0.5047 0.4985 0.4938 0.4979 0.4909 0.4899 0.4984 0.4961 0.7037
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.pace.account import Pauses, pauses_of
from forensics.analyses.pace.clocks import Clock
from forensics.analyses.pace.pauses import Comb
from forensics.rules.kit import Finding, Findings, Run, onset_at, proof, rule


@dataclass(frozen=True, slots=True)
class Paused:
    """Thresholds of SLO005, as shares of the whole time; pauses at evaluations alone are never more than a note.

    `unknown` is for pauses that neither a save nor an evaluation explains, `saving` for saves: healthy jobs that saved
    at every twentieth step spent 18 to 26 % of their time on it, jobs with slow storage from 31 % on. Those of the
    healthy ones were as long as 4 to 7 steps; `dear` is a share for saves as long as `long` steps or more.
    """

    least: float = 0.05
    unknown: float = 0.27
    saving: float = 0.27
    half: float = 0.5
    dear: float = 0.2
    long: float = 10.0
    saves: int = 2


@rule(
    "slowdown",
    needs=("metrics", "checkpoints", "progress"),
    config=Paused,
    confidence="medium",
    cause="periodic_pauses",
)
def periodic_pauses(run: Run, cfg: Paused) -> Findings:
    """Find the clock that lost the largest share of its time to saves, or to pauses with a period."""
    every = pauses_of(run)
    saving = [(c, p) for c, p in every if p.saving >= cfg.saving or (p.saving >= cfg.dear and p.steps >= cfg.long)]
    saving = [(c, p) for c, p in saving if len(p.saves) >= cfg.saves]
    if saving:
        yield _at_saves(*max(saving, key=lambda pair: pair[1].saving), cfg)
        return
    periodic = [pair for pair in every if pair[1].combs and pair[1].share >= cfg.least]
    if periodic:
        yield _periodic(*max(periodic, key=lambda pair: pair[1].share), cfg)


def _at_saves(clock: Clock, found: Pauses, cfg: Paused) -> Finding:
    rows = [clock.rows.row(int(i), named=True) for i in found.saves[:3]]
    share = found.saving
    return periodic_pauses.finding(
        f"saving checkpoints takes {100 * share:.0f} % of the time ({len(found.saves)} saves)",
        "the steps at which a checkpoint was saved take that much longer than those around them",
        proof(rows[0], *rows[1:]),
        onset_at(rows[0]),
        severity="error" if share >= cfg.half else "warning",
        numbers={"share": share, "saves": len(found.saves)},
    )


def _periodic(clock: Clock, found: Pauses, cfg: Paused) -> Finding:
    rows = [clock.rows.row(int(i), named=True) for i in found.records[:3]]
    unknown = found.share - min(found.share, found.saving + found.evaluating)
    said = ", ".join(_period(comb) for comb in found.combs)
    return periodic_pauses.finding(
        f"pauses {said} take {100 * found.share:.0f} % of the time",
        f"{len(found.records)} records stand out; saves take {100 * found.saving:.0f} % of the time "
        f"and evaluations {100 * found.evaluating:.0f} %",
        proof(rows[0], *rows[1:]),
        onset_at(rows[0]),
        severity="warning" if unknown >= cfg.unknown else "info",
        causal="context",
        numbers={
            "share": found.share,
            "period_steps": found.combs[0].period,
            "pauses": len(found.records),
            "unknown": unknown,
        },
    )


def _period(comb: Comb) -> str:
    return f"every {comb.period} steps ({comb.teeth} times)"
