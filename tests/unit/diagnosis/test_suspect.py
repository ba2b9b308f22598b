"""A run that only warns is suspect: never healthy, never failed."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from forensics.diagnosis.verdict import decide
from forensics.model import Causal, Confidence, Coverage, Evidence, Finding, Onset, Outcome, Report, Severity, Shape
from forensics.pipeline import triage
from forensics.report import github, json_v1, junit, markdown, text
from forensics.report.html import page
from forensics.report.payload import report_payload
from forensics.store.run import Run, run_of
from forensics.values import replace

SLOW = Finding(
    rule="SLO001",
    shape=Shape.SLOWDOWN,
    severity=Severity.WARNING,
    confidence=Confidence.MEDIUM,
    title="seconds per step rose to 1.3 times",
    because="made up",
    evidence=(Evidence("train.log", quote="step_time 1.3"),),
    onset=Onset(step=60),
    culprits=(3,),
    cause="level_shift",
)


@pytest.fixture
def finished() -> Run:
    losses = pl.DataFrame({"source": ["a"] * 9, "seq": range(9), "step": range(9), "name": "loss", "value": 3.0})
    done = pl.DataFrame({"source": ["a"], "seq": [9], "line": [10], "code": ["success"], "text": ["training finished"]})
    return run_of("made", {"metrics": losses, "events": done})


def test_a_run_to_its_end_with_a_warning_is_suspect_with_all_that_the_warning_says(finished: Run) -> None:
    verdict = decide([SLOW], finished, Coverage())
    assert (verdict.outcome, verdict.shape, verdict.cause) == (Outcome.SUSPECT, Shape.SLOWDOWN, "level_shift")
    assert (verdict.onset.step, verdict.culprits, verdict.confidence) == (60, (3,), Confidence.MEDIUM)
    assert verdict.headline.startswith("Seconds per step rose to 1.3 times")
    assert verdict.identity == SLOW.identity


def test_the_same_run_without_a_warning_is_healthy_and_a_note_makes_it_no_worse(finished: Run) -> None:
    assert decide([], finished, Coverage()).outcome is Outcome.HEALTHY
    assert decide([replace(SLOW, severity=Severity.INFO)], finished, Coverage()).outcome is Outcome.HEALTHY


def test_a_warning_that_explains_no_failure_is_still_one_of_the_run(finished: Run) -> None:
    assert decide([replace(SLOW, causal=Causal.CONTEXT)], finished, Coverage()).outcome is Outcome.SUSPECT


def test_an_error_decides_before_any_warning_unless_it_is_noise_around_the_run(finished: Run) -> None:
    crash = replace(SLOW, rule="CRH001", shape=Shape.CRASH, severity=Severity.ERROR, title="it broke")
    assert decide([SLOW, crash], finished, Coverage()).outcome is Outcome.FAILED
    assert decide([SLOW, replace(crash, causal=Causal.CONTEXT)], finished, Coverage()).outcome is Outcome.SUSPECT


def test_of_two_warnings_the_surer_one_leads_and_the_other_is_the_rival(finished: Run) -> None:
    other = replace(SLOW, rule="LRN005", shape=Shape.LEARNING, confidence=Confidence.LOW, title="loss stays")
    verdict = decide([other, SLOW], finished, Coverage())
    assert (verdict.shape, verdict.runner_up) == (Shape.SLOWDOWN, "learning: loss stays")


def test_no_page_calls_a_suspect_run_healthy(finished: Run) -> None:
    report = Report("a", decide([SLOW], finished, Coverage()), (SLOW,))
    pages = {
        "text": "\n".join(text.render(report)),
        "markdown": "\n".join(markdown.render(report)),
        "github": "\n".join(github.render(report)),
        "junit": "\n".join(junit.render(report)),
        "html": "\n".join(page.render(report)),
        "json": "".join(json_v1.render(report)),
        "many": "\n".join(text.render_many([report, report])),
    }
    assert pages["text"].startswith("SUSPECT  slowdown  a\n")
    assert pages["markdown"].startswith("## Suspect (slowdown)")
    assert pages["github"].startswith("::warning ")
    assert 'class="outcome suspect">SUSPECT slowdown<' in pages["html"]
    assert pages["many"].startswith("2 runs: 2 suspect")
    assert report_payload(report)["verdict"]["outcome"] == "suspect"
    assert not [name for name, said in pages.items() if "HEALTHY" in said or '"healthy"' in said]


def test_a_slowdown_that_only_warns_is_suspect_from_disk(tmp_path: Path) -> None:
    took = [1.0 + 0.01 * (at % 3) for at in range(120)] + [1.28 + 0.01 * (at % 3) for at in range(120)]
    lines = [f"step {at} loss {3 - at / 200:.4f} step_time {one:.3f}" for at, one in enumerate(took)]
    (tmp_path / "train.log").write_text("\n".join([*lines, "Training complete"]) + "\n")
    verdict = triage(tmp_path).verdict
    assert (verdict.outcome, verdict.shape) == (Outcome.SUSPECT, Shape.SLOWDOWN)
