"""Name the rank that the others waited for, and why.

RUN is a run directory or a file; - reads a log on standard input. Flight-recorder dumps, stacks, per-rank logs and
error files are used where they are.

Exit codes: 0 no hang was found; 1 a hang or a dead rank was found; 3 cannot say.
"""

from __future__ import annotations

from forensics.cli import _options as opt
from forensics.cli._answer import Answer
from forensics.cli._shared import Shared, reads_runs
from forensics.errors import ExitCode


@reads_runs("text", "json", "markdown")
def command(source: opt.InputArgument, *, shared: Shared) -> Answer:
    """Find the culprit of a hang, and the waits that it caused."""
    from forensics import pipeline  # noqa: PLC0415 - polars is not on the path of --help
    from forensics.diagnosis.hang import picture  # noqa: PLC0415 - same
    from forensics.report.pages import hang as pages  # noqa: PLC0415 - same

    run = shared.reading.one(source)
    report = pipeline.report_of(run)
    page = pages.Page(picture(run), report.verdict, run.name, coverage=report.coverage, issues=report.issues)
    unsure = ExitCode.CANNOT_SAY if page.verdict.outcome.value == "cannot_say" else ExitCode.OK
    code = ExitCode.FINDINGS if pages.is_hang(page) else unsure
    return shared.answer(page, pages.LAYOUT.render, code, run)
