"""A report as plain values for JSON: every field named by hand, so that no rename in the code reaches a reader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from forensics.action import Action
from forensics.model import Coverage, Evidence, Finding, Issue, Onset, Report, Verdict
from forensics.report.phrases import utc
from forensics.values import named, tool_version

REPORT_SCHEMA = "forensics.report/1"
Payload = dict[str, Any]


def tool() -> Payload:
    """Name and version of the program that wrote the document."""
    return {"name": "forensics", "version": tool_version()}


class Accounted(Struct, frozen=True, kw_only=True):
    """The result of a command, with the coverage of its input: every file that was read, and every loss."""

    coverage: Coverage = field(default_factory=Coverage)
    issues: tuple[Issue, ...] = ()


def headed(schema: str, fields: Payload) -> Payload:
    """Give the document of a schema."""
    return {"schema": schema, "tool": tool(), **fields}


def document(reports: Sequence[Report]) -> Payload:
    """Give one report, or several under `runs`."""
    every = [report_payload(report) for report in reports]
    return headed(REPORT_SCHEMA, every[0] if len(every) == 1 else {"runs": every})


def report_payload(report: Report) -> Payload:
    """Give everything of one run."""
    return {
        "run": report.run,
        "verdict": _verdict(report.verdict),
        "findings": [_finding(f) for f in report.findings],
        **read_payload(report.coverage, report.issues),
        **named(report, "suppressed plugins"),
    }


def read_payload(coverage: Coverage, issues: Sequence[Issue]) -> Payload:
    """Give `coverage` and `issues`, which every document has."""
    return {
        "coverage": _coverage(coverage),
        "issues": [named(one, "source code message byte line count") for one in issues],
    }


def _verdict(verdict: Verdict) -> Payload:
    seen = verdict.seen_before
    return {
        **named(verdict, "outcome shape headline"),
        "onset": _onset(verdict.onset),
        "culprits": sorted(verdict.culprits),
        **named(verdict, "cause? confidence onset_confidence cause_confidence lead chain chain_findings runner_up"),
        "against": [evidence_payload(e) for e in verdict.against],
        "checkpoint": named(verdict.checkpoint, "step path") if verdict.checkpoint else None,
        "actions": [_action(a) for a in verdict.actions],
        **named(verdict, "missing playbook restart"),
        "seen_before": {"count": seen.count, "first": utc(seen.first_ns), "last": utc(seen.last_ns)} if seen else None,
        "identity": named(verdict.identity, "root entity") if verdict.identity else None,
    }


def _action(action: Action) -> Payload:
    """One thing to do, with the setting that it changes as the run has it."""
    now = named(action.setting, "key value place") if action.setting is not None else None
    return {**named(action, "text command"), "setting": now, **named(action, "value source")}


def _onset(onset: Onset) -> Payload:
    """Where it started; `step_lo` is the last step known to be good."""
    return {"step": onset.step, "step_lo": onset.step_lo, "time": utc(onset.t_ns), "rank": onset.rank}


def _finding(finding: Finding) -> Payload:
    return {
        **named(finding, "rule shape severity confidence causal title because"),
        "onset": _onset(finding.onset),
        "culprits": sorted(finding.culprits),
        "cause": finding.cause or None,
        "evidence": [evidence_payload(e) for e in finding.evidence],
        "numbers": dict(sorted(finding.numbers.items())),
        **named(finding, "likely next fingerprint"),
    }


def evidence_payload(evidence: Evidence) -> Payload:
    """Give one thing to look up."""
    at = "line=locator.line byte=locator.byte record=locator.record path=locator.path"
    return {
        **named(evidence, f"source place {at} quote step rank"),
        "time": utc(evidence.t_ns),
        **named(evidence, "name value role"),
    }


def _coverage(coverage: Coverage) -> Payload:
    """The account of bytes, absent signals, and names that were read but not recognised."""
    file = "source status format? ingester? size_bytes read_bytes skipped_bytes records reason?"
    return {
        "files": [named(f, file) for f in coverage.files],
        **named(coverage, "absent unrecognised signals lost_bytes"),
    }
