"""Reports for a pipeline: no text of an input becomes a command, an element or an eleventh annotation."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.model import Confidence, Evidence, Finding, Locator, Outcome, Report, Severity, Shape, Verdict
from forensics.report import github, junit
from forensics.values import replace

from .conftest import HOSTILE
from .test_html_page import PAYLOADS

COMMAND = re.compile(r"::(error|warning|notice) (?:file=[^:,\n]*,)?(?:line=\d+,)?title=[^:,\n]*::[^\n]*")
COMMANDS = (
    "##[error]x",
    "\n::error::x",
    "\r::set-output name=a::b",
    "x\n##[endgroup]",
    "::stop-commands::t",
    "[/x]",
    "%0A::x::",
)
ANY = st.one_of(st.text(), st.sampled_from([*PAYLOADS, *COMMANDS]))


def report_of(word: str, findings: int = 1, outcome: Outcome = Outcome.FAILED) -> Report:
    evidence = Evidence(word, Locator(line=7), quote=word)
    every = tuple(
        Finding("NAN001", Shape.NAN, Severity.ERROR, Confidence.HIGH, word, word, (evidence,), next=(word,))
        for _ in range(findings)
    )
    return Report(word, Verdict(outcome, word, Shape.NAN, chain=(word,)), every)


@given(ANY)
def test_every_line_is_one_annotation_whatever_the_text(word: str) -> None:
    for outcome in Outcome:
        lines = list(github.render(report_of(word, 2, outcome)))
        assert lines
        for line in lines:
            assert len(line.splitlines()) == 1
            assert COMMAND.fullmatch(line)
            assert "##[" not in line


@given(st.integers(0, 40), st.integers(1, 5))
def test_there_are_never_more_than_ten_annotations(findings: int, runs: int) -> None:
    report = report_of("x", findings)
    assert len(list(github.render(report))) <= 10
    assert len(list(github.render_many([report] * runs))) <= 10


def test_an_annotation_stands_at_its_line(failed: Report) -> None:
    lost, first, *_ = github.render(failed)
    assert lost.startswith("::warning title=forensics%3A input lost::112 of 90,112 bytes of logs/rank_3/stdout.log")
    assert first.startswith("::error file=runs/a/logs/rank_3/stdout.log,line=1031,title=forensics%3A NAN001 nan::")
    assert "%0Anext: " in first


def test_a_run_that_cannot_be_judged_is_a_warning_and_a_healthy_one_a_notice() -> None:
    unsure = replace(report_of("x", 0, Outcome.CANNOT_SAY))
    assert next(iter(github.render(unsure))).startswith("::warning ")
    assert next(iter(github.render(report_of("x", 0, Outcome.HEALTHY)))).startswith("::notice ")


def test_a_suspect_run_is_neither_passed_nor_failed_in_a_suite() -> None:
    verdict = next(ET.fromstring("\n".join(junit.render(report_of("x", 0, Outcome.SUSPECT)))).iter("testcase"))
    assert [child.tag for child in verdict] == ["skipped", "system-out"]


@given(ANY)
def test_the_suite_is_well_formed_and_of_the_same_shape_whatever_the_text(word: str) -> None:
    for outcome in Outcome:
        root = ET.fromstring("\n".join(junit.render(report_of(word, 2, outcome))).encode())
        assert [e.tag for e in root.iter()] == [
            e.tag for e in ET.fromstring("\n".join(junit.render(report_of("x", 2, outcome)))).iter()
        ]
        assert int(root.get("tests", "")) == len(root.findall("testcase"))
        assert int(root.get("failures", "")) == len(root.findall("testcase/failure"))
        assert int(root.get("skipped", "")) == len(root.findall("testcase/skipped"))


def test_several_runs_are_one_document_of_suites(failed: Report) -> None:
    root = ET.fromstring("\n".join(junit.render_many([failed, failed])).encode())
    assert [e.tag for e in root] == ["testsuite", "testsuite"]


@pytest.mark.parametrize("render", [github.render, junit.render])
def test_no_control_character_is_left(render: Callable[..., object]) -> None:
    text = "\n".join(render(report_of(HOSTILE)))  # type: ignore[call-overload] # both give lines
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", text)
