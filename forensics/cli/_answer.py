"""What a command gives back: text, an exit code, and where the text goes. Only `main.run` writes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from forensics.errors import ExitCode
from forensics.model import Coverage, Finding, Outcome, Report, Severity

_NEVER = "never"


class Answer(Struct, frozen=True):
    """The result of a command; `notes` go to stderr, `text` to stdout or to the file `out`, `also` to files."""

    text: str
    code: ExitCode = ExitCode.OK
    out: str | None = None
    force: bool = False
    notes: tuple[str, ...] = ()
    also: tuple[tuple[str, str], ...] = ()


def losses(coverage: Coverage) -> tuple[str, ...]:
    """Give a note for a command that shows no account of its input: nothing where nothing was lost."""
    if not coverage.lost:
        return ()
    size_bytes = sum(file.skipped_bytes for file in coverage.lost)
    return (f"{size_bytes} bytes of the run could not be read: forensics ingest -v shows where",)


def lines(parts: Iterable[str]) -> str:
    """Join lines, each ended by a newline."""
    return "".join(f"{part}\n" for part in parts)


# From what was found to an exit code; the output format has no part in it.


class Gate(Struct, frozen=True):
    """When a run that could be read should fail the caller."""

    fail_on: str = Severity.ERROR.value
    exit_zero: bool = False
    strict: bool = False

    def code(self, code: ExitCode, coverages: Sequence[Coverage]) -> ExitCode:
        """Apply `--strict` and `--exit-zero` to the code of a command that ran to its end."""
        if self.exit_zero:
            return ExitCode.OK
        if self.strict and any(lost(c) for c in coverages):
            return ExitCode.INPUT_LOST
        return code

    def of_reports(self, reports: Sequence[Report]) -> ExitCode:
        """Give the exit code of a triage: findings before cannot-say before nothing found."""
        if any(self.fails(f) for report in reports for f in _counted(report)):
            code = ExitCode.FINDINGS
        elif any(report.verdict.outcome is Outcome.CANNOT_SAY for report in reports):
            code = ExitCode.CANNOT_SAY
        else:
            code = ExitCode.OK
        return self.code(code, [report.coverage for report in reports])

    def fails(self, finding: Finding) -> bool:
        """Whether one finding is at or above the bar; a shape as the bar counts from warning on."""
        if self.fail_on == _NEVER:
            return False
        if self.fail_on in tuple(Severity):
            return finding.severity.rank >= Severity(self.fail_on).rank
        return finding.shape.value == self.fail_on and finding.severity is not Severity.INFO


def lost(coverage: Coverage) -> bool:
    """Whether bytes of a file that was recognised could not be understood, or a file could not be read."""
    return bool(coverage.lost)


def _counted(report: Report) -> Sequence[Finding]:
    # noise around a run that did not fail is told as context; it must not fail the caller
    if report.verdict.outcome is Outcome.FAILED:
        return report.findings
    return [f for f in report.findings if not f.is_noise]
