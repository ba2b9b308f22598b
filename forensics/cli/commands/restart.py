"""Decide whether to start a failed run again, and how.

RUN is a run directory or a file; - reads a log on standard input. The answer is made for a launcher's loop, which
starts the job again as long as this command exits with 0:

    until launch; do forensics restart RUN || break; done

Exit codes: 0 start it again, as it is or elsewhere; 1 not before something changes, or it came to its end; 3 cannot
say.
"""

from __future__ import annotations

from forensics.cli import _options as opt
from forensics.cli._answer import Answer
from forensics.cli._shared import Shared, reads_runs
from forensics.errors import ExitCode

_CODES = {"as_is": ExitCode.OK, "elsewhere": ExitCode.OK, "unknown": ExitCode.CANNOT_SAY}


@reads_runs("text", "json", "markdown")
def command(source: opt.InputArgument, *, shared: Shared) -> Answer:
    """Decide whether a failed run is to be started again, and with which options."""
    from forensics import pipeline  # noqa: PLC0415 - polars is not on the path of --help
    from forensics.report.pages import restart as pages  # noqa: PLC0415 - same

    run = shared.reading.one(source)
    report = pipeline.report_of(run)
    page = pages.Page(report.verdict, run.name, coverage=report.coverage, issues=report.issues)
    decision = report.verdict.restart.decision if report.verdict.restart is not None else ""
    return shared.answer(page, pages.LAYOUT.render, _CODES.get(decision, ExitCode.FINDINGS), run)
