"""Find where a run stopped being finite, and where to restart.

INPUT is a log file, a run directory, or - for a log on standard input.

Exit codes: 0 every value is finite; 1 a non-finite step was found; 3 cannot say.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forensics.cli import _options as opt
from forensics.cli._answer import Answer, lines
from forensics.cli._exit import Gate
from forensics.errors import ExitCode

if TYPE_CHECKING:
    from forensics.nan_origin import NanOrigin
    from forensics.store.run import Run

InputArgument = Annotated[str, typer.Argument(metavar="INPUT", help="A log, a run directory, or - for stdin.")]


def command(  # noqa: PLR0913 - each is an option of the command line
    source: InputArgument,
    *,
    format_: opt.FormatOption = "text",
    out: opt.OutOption = None,
    force: opt.ForceOption = False,
    exit_zero: opt.ExitZeroOption = False,
    strict: opt.StrictOption = False,
    redact: opt.RedactOption = False,
    quiet: opt.QuietOption = False,
    color: opt.ColorOption = "auto",
    verbose: opt.VerboseOption = False,
) -> Answer:
    """Find the first step at which a value was not finite."""
    from forensics.nan_origin import origin  # noqa: PLC0415 - polars is not on the path of --help
    from forensics.report import nan_origin as page  # noqa: PLC0415 - same
    from forensics.report._redacted import redacted  # noqa: PLC0415 - same
    from forensics.store.gather import coverage_of, issues_of  # noqa: PLC0415 - same

    output = opt.Output(format_, out, force, color, verbose).checked(page.FORMATS)
    run = _read(source, quiet=quiet)
    found, coverage = origin(run), coverage_of(run)
    shown = page.Page(found, run.name, coverage, issues_of(run))
    text = lines(page.render(redacted(shown, run) if redact else shown, output.format, output.style))
    return Answer(text, Gate(exit_zero=exit_zero, strict=strict).code(_code(found), [coverage]), out, force)


def _code(found: NanOrigin) -> ExitCode:
    if found.kind == "none":
        return ExitCode.OK
    bad = found.kind != "unknown" or found.first_bad_metric is not None
    return ExitCode.FINDINGS if bad else ExitCode.CANNOT_SAY


def _read(source: str, *, quiet: bool) -> Run:
    from forensics import pipeline  # noqa: PLC0415 - polars is not on the path of --help
    from forensics.cli._progress import watched  # noqa: PLC0415 - same

    if source == "-":
        return pipeline.ingest_stream("stdin", sys.stdin.buffer)
    with watched(quiet=quiet) as seen:
        return pipeline.ingest_run(Path(source), progress=seen)
