"""A report as plain values for JSON: every field named by hand, so that no rename in the code reaches a reader."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from forensics.action import Action
from forensics.model import Coverage, Evidence, FileCoverage, Finding, Issue, Onset, Report, Verdict
from forensics.report.phrases import utc

REPORT_SCHEMA = "forensics.report/1"
Payload = dict[str, Any]


def tool() -> Payload:
    """Name and version of what wrote the document."""
    try:
        version = metadata.version("ml-run-forensics")
    except metadata.PackageNotFoundError:
        version = "unknown"
    return {"name": "forensics", "version": version}


def document(reports: Sequence[Report]) -> Payload:
    """Give one report, or several under `runs`."""
    if len(reports) == 1:
        return {"schema": REPORT_SCHEMA, "tool": tool(), **report_payload(reports[0])}
    return {"schema": REPORT_SCHEMA, "tool": tool(), "runs": [report_payload(r) for r in reports]}


def report_payload(report: Report) -> Payload:
    """Give everything of one run."""
    return {
        "run": report.run,
        "verdict": verdict_payload(report.verdict),
        "findings": [finding_payload(f) for f in report.findings],
        **read_payload(report.coverage, report.issues),
        "suppressed": report.suppressed,
        "plugins": list(report.plugins),
    }


def read_payload(coverage: Coverage, issues: Sequence[Issue]) -> Payload:
    """Give `coverage` and `issues`, which every document has."""
    return {"coverage": coverage_payload(coverage), "issues": [issue_payload(i) for i in issues]}


def verdict_payload(verdict: Verdict) -> Payload:
    """Give the answer."""
    return {
        "outcome": verdict.outcome.value,
        "shape": verdict.shape.value if verdict.shape else None,
        "headline": verdict.headline,
        "onset": onset_payload(verdict.onset),
        "culprits": sorted(verdict.culprits),
        "cause": verdict.cause or None,
        "confidence": verdict.confidence.value,
        "onset_confidence": verdict.onset_confidence.value if verdict.onset_confidence else None,
        "cause_confidence": verdict.cause_confidence.value if verdict.cause_confidence else None,
        "lead": verdict.lead,
        "chain": list(verdict.chain),
        "chain_findings": list(verdict.chain_findings),
        "runner_up": verdict.runner_up,
        "against": [evidence_payload(e) for e in verdict.against],
        "checkpoint": {"step": verdict.checkpoint.step, "path": verdict.checkpoint.path}
        if verdict.checkpoint
        else None,
        "actions": [action_payload(a) for a in verdict.actions],
        "missing": [dataclasses.asdict(gap) for gap in verdict.missing],
        "playbook": [dataclasses.asdict(check) for check in verdict.playbook],
        "restart": dataclasses.asdict(verdict.restart) if verdict.restart else None,
        "seen_before": {
            "count": verdict.seen_before.count,
            "first": utc(verdict.seen_before.first_ns),
            "last": utc(verdict.seen_before.last_ns),
        }
        if verdict.seen_before is not None
        else None,
        "identity": {"root": verdict.identity.root, "entity": verdict.identity.entity} if verdict.identity else None,
    }


def action_payload(action: Action) -> Payload:
    """Give one thing to do, with the setting that it changes as the run has it."""
    now = action.setting
    return {
        "text": action.text,
        "command": action.command,
        "setting": {"key": now.key, "value": now.value, "place": now.place} if now is not None else None,
        "value": action.value,
        "source": action.source,
    }


def onset_payload(onset: Onset) -> Payload:
    """Give where it started; `step_lo` is the last step known to be good."""
    return {"step": onset.step, "step_lo": onset.step_lo, "time": utc(onset.t_ns), "rank": onset.rank}


def finding_payload(finding: Finding) -> Payload:
    """Give one claim."""
    return {
        "rule": finding.rule,
        "shape": finding.shape.value,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "causal": finding.causal.value,
        "title": finding.title,
        "because": finding.because,
        "onset": onset_payload(finding.onset),
        "culprits": sorted(finding.culprits),
        "cause": finding.cause or None,
        "evidence": [evidence_payload(e) for e in finding.evidence],
        "numbers": dict(sorted(finding.numbers.items())),
        "likely": list(finding.likely),
        "next": list(finding.next),
        "fingerprint": finding.fingerprint,
    }


def evidence_payload(evidence: Evidence) -> Payload:
    """Give one thing to look up."""
    at = evidence.locator
    return {
        "source": evidence.source,
        "place": evidence.place,
        "line": at.line,
        "byte": at.byte,
        "record": at.record,
        "path": at.path,
        "quote": evidence.quote,
        "step": evidence.step,
        "rank": evidence.rank,
        "time": utc(evidence.t_ns),
        "name": evidence.name,
        "value": evidence.value,
        "role": evidence.role.value,
    }


def coverage_payload(coverage: Coverage) -> Payload:
    """Give the account of bytes, what was absent, and the names that were read and not recognised."""
    return {
        "files": [_file(f) for f in coverage.files],
        "absent": list(coverage.absent),
        "unrecognised": list(coverage.unrecognised),
        "signals": [dataclasses.asdict(signal) for signal in coverage.signals],
        "lost_bytes": coverage.lost_bytes,
    }


def _file(file: FileCoverage) -> Payload:
    return {
        "source": file.source,
        "status": file.status.value,
        "format": file.format or None,
        "ingester": file.ingester or None,
        "size_bytes": file.size_bytes,
        "read_bytes": file.read_bytes,
        "skipped_bytes": file.skipped_bytes,
        "records": file.records,
        "reason": file.reason or None,
    }


def issue_payload(issue: Issue) -> Payload:
    """Give one loss."""
    return {
        "source": issue.source,
        "code": issue.code,
        "message": issue.message,
        "byte": issue.byte,
        "line": issue.line,
        "count": issue.count,
    }
