"""Reports made by hand, so that renderers are tested without reading anything."""

from __future__ import annotations

import pytest

from forensics.action import Action, Setting
from forensics.model import (
    Causal,
    Checkpoint,
    Confidence,
    Coverage,
    Evidence,
    EvidenceRole,
    FileCoverage,
    FileStatus,
    Finding,
    Issue,
    Locator,
    Onset,
    Outcome,
    Report,
    Severity,
    Shape,
    Verdict,
)

T_NS = 1_767_225_600_000_000_000  # 2026-01-01T00:00:00Z
HOSTILE = (
    "\x1b]0;x\x07 <script>alert(1)</script> [/red] ##[error]x ::error::y `a` ``b`` | ![i](http://x) \u202etxt\udcff"
)


def _finding(rule: str = "NAN001", **changed: object) -> Finding:
    fields: dict[str, object] = {
        "shape": Shape.NAN,
        "severity": Severity.ERROR,
        "confidence": Confidence.HIGH,
        "title": "loss is NaN from step 412 on",
        "because": "grad_norm rose 38 times above its usual value 7 steps before the first NaN",
        "evidence": (
            Evidence(
                "logs/rank_3/stdout.log",
                Locator(line=1031, byte=88_112),
                quote="step 412 | loss nan | grad_norm inf | lr 3.0e-04",
                step=412,
                rank=3,
                t_ns=T_NS,
                name="loss",
                value=float("nan"),
            ),
            Evidence(
                "logs/rank_3/stdout.log",
                Locator(line=1017, byte=87_001),
                quote="step 405 | loss 4.1200 | grad_norm 51.300 | lr 3.0e-04",
                step=405,
                rank=3,
                name="grad_norm",
                value=51.3,
                role=EvidenceRole.RELATED,
            ),
        ),
        "onset": Onset(step=412, t_ns=T_NS, rank=3, step_lo=411),
        "culprits": (3,),
        "cause": "optimization_blowup",
        "numbers": {"ratio": 38.2, "lead_steps": 7},
        "likely": ("learning rate too high",),
        "next": ("forensics nan-origin runs/a",),
    }
    return Finding(rule=rule, **{**fields, **changed})  # type: ignore[arg-type]


@pytest.fixture
def make_finding() -> object:
    return _finding


@pytest.fixture
def failed() -> Report:
    return Report(
        run="runs/a",
        verdict=Verdict(
            Outcome.FAILED,
            "loss became NaN at step 412 after a spike of the gradient norm",
            Shape.NAN,
            Onset(step=412, t_ns=T_NS, rank=3, step_lo=411),
            (3,),
            "optimization_blowup",
            Confidence.HIGH,
            ("the gradient norm spiked at step 405", "loss became NaN at step 412", "the detector stopped the run"),
            "CRS001: RuntimeError raised by the detector at step 415",
            identity=_finding().identity,
            checkpoint=Checkpoint(400, "ckpt/step_400"),
            lead=0,
            chain_findings=(0, 1),
            onset_confidence=Confidence.HIGH,
            cause_confidence=Confidence.MEDIUM,
            actions=(
                Action(
                    "Lower the peak learning rate", "the tuning guide", setting=Setting("lr", "0.003", "run.yaml:7")
                ),
                Action("Look at the driver", "the driver's manual", command="nvidia-smi -q"),
            ),
        ),
        findings=(
            _finding(),
            _finding(
                "CRS001",
                shape=Shape.CRASH,
                severity=Severity.WARNING,
                confidence=Confidence.MEDIUM,
                title="RuntimeError: non-finite loss",
                because="",
                evidence=(Evidence("logs/rank_3/stderr.log", Locator(line=9), "RuntimeError: non-finite loss"),),
                onset=Onset(step=415),
                cause="detector",
                causal=Causal.SYMPTOM,
            ),
        ),
        coverage=Coverage(
            files=(
                FileCoverage(
                    "logs/rank_3/stderr.log", 900, 900, 0, FileStatus.READ, "text_log", records=4, format="torchtitan"
                ),
                FileCoverage(
                    "logs/rank_3/stdout.log",
                    90_112,
                    90_000,
                    112,
                    FileStatus.PARTIAL,
                    "text_log",
                    "cut inside a line",
                    1_031,
                    "torchtitan",
                ),
                FileCoverage("model.bin", 5_000, 0, 5_000, FileStatus.SKIPPED, reason="not recognised"),
            ),
            absent=("profiler traces", "evaluation results"),
        ),
        issues=(Issue("logs/rank_3/stdout.log", "truncated", "the last line is cut", byte=90_000, line=1_031),),
        suppressed=1,
    )


@pytest.fixture
def healthy() -> Report:
    verdict = Verdict(Outcome.HEALTHY, "the run reached its last step 1,000 of 1,000", confidence=Confidence.MEDIUM)
    files = (FileCoverage("train.log", 10, 10, 0, FileStatus.READ, "text_log", records=1, format="nanogpt"),)
    return Report("runs/b", verdict, coverage=Coverage(files))


@pytest.fixture
def silent() -> Report:
    files = (FileCoverage("notes.txt", 10, 0, 10, FileStatus.SKIPPED, reason="not recognised"),)
    verdict = Verdict(Outcome.CANNOT_SAY, "nothing in this run was recognised")
    return Report("runs/c", verdict, coverage=Coverage(files, ("metrics", "log events")))


@pytest.fixture
def hostile() -> Report:
    """A report in which every text that an input can set is an attack."""
    evidence = Evidence(HOSTILE, Locator(line=1), HOSTILE + "\n" + HOSTILE, name=HOSTILE, value=float("inf"))
    finding = _finding(title=HOSTILE, because=HOSTILE, evidence=(evidence,), likely=(HOSTILE,), next=(HOSTILE,))
    verdict = Verdict(
        Outcome.FAILED, HOSTILE, Shape.NAN, cause=HOSTILE, chain=(HOSTILE, HOSTILE), runner_up=HOSTILE,
        against=(evidence,), identity=finding.identity,
        actions=(Action(HOSTILE, HOSTILE, HOSTILE, Setting(HOSTILE, HOSTILE, HOSTILE)),),
    )  # fmt: skip
    files = (FileCoverage(HOSTILE, 1, 0, 1, FileStatus.SKIPPED, HOSTILE, HOSTILE, format=HOSTILE),)
    issues = (Issue(HOSTILE, HOSTILE, HOSTILE),)
    return Report(HOSTILE, verdict, (finding,), Coverage(files, (HOSTILE,)), issues, plugins=(HOSTILE,))
