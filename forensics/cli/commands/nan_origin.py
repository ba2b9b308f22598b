"""Find where a run stopped being finite, and where to restart.

INPUT is a log file, a run directory, or - for a log on standard input.

Exit codes: 0 every value is finite; 1 a non-finite step was found; 3 cannot say.
"""

from __future__ import annotations

from typing import Annotated

import typer

from forensics.cli._answer import Answer
from forensics.cli._shared import Shared, reads_runs
from forensics.errors import ExitCode

InputArgument = Annotated[str, typer.Argument(metavar="INPUT", help="A log, a run directory, or - for stdin.")]


@reads_runs("text", "json", "markdown")
def command(source: InputArgument, *, shared: Shared) -> Answer:
    """Find the first step at which a value was not finite."""
    from forensics import pipeline  # noqa: PLC0415 - polars is not on the path of --help
    from forensics.analyses.nan.origin import origin  # noqa: PLC0415 - same
    from forensics.report.pages import nan_origin as page  # noqa: PLC0415 - same

    run = shared.reading.one(source)
    found = origin(run)
    report = pipeline.report_of(run)
    restart = page.restart_of(report.verdict)
    shown = page.Page(found, run.name, restart, coverage=report.coverage, issues=report.issues)
    bad = found.kind != "unknown" or found.first_bad_metric is not None
    code = ExitCode.OK if found.kind == "none" else ExitCode.FINDINGS if bad else ExitCode.CANNOT_SAY
    return shared.answer(shown, page.LAYOUT.render, code, run)
