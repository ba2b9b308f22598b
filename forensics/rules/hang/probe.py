"""The liveness probe of a training loop, and settings that leave a hang undetected."""

from __future__ import annotations

from forensics.analyses.hang.lines import matching
from forensics.case.end_markers import SURVIVED_STEPS, marks_of
from forensics.case.errors.failures import standing
from forensics.case.settings import keyed
from forensics.knowledge.hazards import hazards_of
from forensics.patterns import lazily
from forensics.rules.kit import Findings, Onset, Run, event_evidence, fact_evidence, proof, remark, rule

_FAILED = lazily(r"(?:NCCL )?health check failed at step (?P<step>\d{1,12})")


@rule(
    "HNG019 liveness-probe-failed",
    "events metrics",
    severity="error",
    confidence="medium",
    cause="partial_participation",
)
def health_check(run: Run) -> Findings:
    """Find a liveness probe that failed and ended the run."""
    end = marks_of(run)
    for row, hit in matching(run, _FAILED, "health check failed at step"):
        if end.steps_of(row["source"]).at_least(SURVIVED_STEPS, after=row["line"] or row["byte"] or 0):
            continue
        step = int(hit["step"])
        yield health_check.finding(
            f"the liveness probe failed at step {step}: not all ranks take part",
            "the probe came back with a wrong sum, so ranks live but took different branches",
            proof(event_evidence(row)),
            Onset(step=step, t_ns=row["t_ns"], rank=row["rank"]),
        )
        return


@remark("HNG020 no-liveness-probe", "events facts metrics", confidence="medium")
def probe_off(run: Run) -> Findings:
    """Advise on settings when a run hung."""
    if not any(f.shape == "hang" for f in standing(run)):
        return
    for hazard in hazards_of("hang"):
        stated = keyed(run, hazard.keys).sort("source", "key").head(1)
        for row in stated.collect().iter_rows(named=True):
            if (row["value"] or "").strip('"') in hazard.values:
                yield probe_off.finding(
                    hazard.says,
                    "the run hung, and its configuration says so",
                    proof(fact_evidence(row)),
                    next=(hazard.advice,),
                )
