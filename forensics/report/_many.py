"""Several runs at once: which of them failed the same way."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from forensics.model import Outcome, Report
from forensics.report import _phrases as say

#: The fingerprint of a run that did not fail.
NOTHING = "-"


def fingerprint(report: Report) -> str:
    """Give what is equal for runs that failed the same way; `-` for a run that did not fail."""
    finding = say.lead(report)
    return finding.fingerprint if finding is not None and report.verdict.outcome is Outcome.FAILED else NOTHING


def grouped(reports: Sequence[Report]) -> list[tuple[str, list[Report]]]:
    """Group runs by fingerprint, the largest group first; within a group runs stay in the order they were given."""

    def kind(report: Report) -> tuple[str, str, str]:
        key, verdict = fingerprint(report), report.verdict
        return key, verdict.outcome.value, verdict.headline if key == NOTHING else ""

    groups = [(key[0], list(same)) for key, same in groupby(sorted(reports, key=kind), key=kind)]
    return sorted(groups, key=lambda group: (group[0] == NOTHING, -len(group[1]), group[0]))
