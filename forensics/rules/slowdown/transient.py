"""SLO002 temporary-slowdown: steps were slower for a while, and came back.

What it detects: twenty or more records in a row that were slower by 5 % or more, after which the old level returned.

Why it matters: the run is not slow now, so nothing needs to be done to it; the time is lost all the same, and it may
come again.

How it decides: the levels of the steady step times (docs/explanation/slowdown.md): a higher one that ends before the
run does. A warning where it cost `lost` of the run's time and stands `z` deviations out; else a note.

What else looks like this: a stage of the training with heavier steps, by design; an evaluation that runs beside the
training.

What to do next: compare the times with those of other jobs on the same hosts and storage.

References: Chow et al., "FBDetect: Catching Tiny Performance Regressions at Hyperscale" (SOSP 2024), on changes that
went away.

Example:
    ```metrics
    step: 1..80
    step_time: 0.5005 0.5063 0.4954 0.505 0.4987*2 0.5096 0.5008 0.4998 0.5037 0.5057 0.4998 0.5029 0.4952 0.4982 0.4978
        0.4934 0.4925 0.4919 0.4988 0.4991 0.4984 0.5003 0.4934 0.4996 0.5012 0.5038 0.4958 0.498 0.49 0.796 0.7826
        0.7887 0.8089 0.7826 0.8064 0.8026 0.7975 0.8037 0.8042 0.8084 0.7982 0.7953 0.7952 0.7921 0.7996 0.7937 0.8086
        0.7852 0.7913 0.7924 0.7834 0.8154 0.781 0.7977 0.4974 0.5083 0.4902 0.5054 0.4964 0.4992 0.4967 0.5032 0.4943
        0.4996 0.5018 0.5093 0.4881 0.5077 0.5048 0.4976 0.5015 0.4977 0.5083 0.501 0.4989*2 0.499 0.4991 0.4956
    ```
    => SLO002 warning confidence=low step=31 step_lo=30 cause=temporary_slowdown causal=context ratio=1.595 lost=0.1586
Not this: three single slow records
    ```metrics
    step: 1..55
    step_time: 0.5104 0.4905 0.4823 0.4994 0.4993 0.5019 0.499 0.4993 0.5017 0.5049 0.4978 0.4981 0.5098 0.5027 4.1
        0.4951 0.5118 0.5039 0.4971 0.4942 0.5015 0.4959 0.4947 0.4936 0.4975 0.5056 0.4978 0.4928 0.5034 4 0.5003
        0.5042 0.506 0.4992 0.4993 0.4998 0.4944 0.5034 0.5069 0.5009 0.4988 0.4987 0.4961 0.496 4.2 0.498 0.4958
        0.4978 0.4922 0.5018 0.5002 0.4943 0.4886 0.5 0.5056
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.pace.account import Paced, paced
from forensics.analyses.pace.change import Change
from forensics.rules.kit import Finding, Findings, Run, number, rule
from forensics.rules.slowdown._pace import confidence_of, evidence_of, measured, onset_of


@dataclass(frozen=True, slots=True)
class Temporary:
    """Thresholds of SLO002: it is a warning where it cost `lost` of the run's time and stands `z` deviations out."""

    lost: float = 0.02
    z: float = 8.0


@rule(
    "slowdown",
    needs=("metrics", "checkpoints", "progress"),
    config=Temporary,
    cause="temporary_slowdown",
    causal="context",
)
def temporary_slowdown(run: Run, cfg: Temporary) -> Findings:
    """Find the slow stretch that ended and cost most of the time."""
    found = [(p, p.change) for p in paced(run) if p.change is not None and p.change.kind == "transient"]
    if found:
        yield _finding(*max(found, key=lambda pair: pair[0].lost(pair[1])), cfg)


def _finding(one: Paced, change: Change, cfg: Temporary) -> Finding:
    lost = one.lost(change)
    last = one.at(min(change.end, len(one.steady) - 1))
    return temporary_slowdown.finding(
        f"the time per {one.clock.unit} rose to {change.ratio:.2f} times from step {one.at(change.first)} "
        f"to step {last}, then came back",
        measured(one, change),
        evidence_of(one, change),
        onset_of(one, change),
        severity="warning" if lost >= cfg.lost and change.z >= cfg.z else "info",
        confidence=confidence_of(one, change),
        numbers={"before_s": number(change.before), "ratio": change.ratio, "end_step": last, "lost": lost},
    )
