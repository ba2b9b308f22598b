"""Name the rank that the others waited for, and why.

RUN is a run directory or a file; - reads a log on standard input. Flight-recorder dumps, stacks, per-rank logs and
error files are used where they are.

Exit codes: 0 no hang was found; 1 a hang or a dead rank was found; 3 cannot say.
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
    from forensics.report.hang import Page
    from forensics.store.run import Run

InputArgument = Annotated[str, typer.Argument(metavar="RUN", help="A run directory, a file, or - for stdin.")]


def command(  # noqa: PLR0913 - each is an option of the command line
    source: InputArgument,
    *,
    format_: opt.FormatOption = "text",
    out: opt.OutOption = None,
    force: opt.ForceOption = False,
    exit_zero: opt.ExitZeroOption = False,
    strict: opt.StrictOption = False,
    color: opt.ColorOption = "auto",
    verbose: opt.VerboseOption = False,
) -> Answer:
    """Find the culprit of a hang, and the waits that it caused."""
    from forensics import pipeline  # noqa: PLC0415 - polars is not on the path of --help
    from forensics.hang import picture  # noqa: PLC0415 - same
    from forensics.report import hang as pages  # noqa: PLC0415 - same

    output = opt.Output(format_, out, force, color, verbose).checked(pages.FORMATS)
    run = _read(source)
    report = pipeline.report_of(run, shapes=pages.SHAPES)
    page = pages.Page(picture(run), report.verdict, run.name, report.coverage, report.issues)
    text = lines(pages.render(page, output.format, output.style))
    code = _code(page, hangs=pages.is_hang(page))
    return Answer(text, Gate(exit_zero=exit_zero, strict=strict).code(code, [report.coverage]), out, force)


def _code(page: Page, *, hangs: bool) -> ExitCode:
    if hangs:
        return ExitCode.FINDINGS
    return ExitCode.CANNOT_SAY if page.verdict.outcome.value == "cannot_say" else ExitCode.OK


def _read(source: str) -> Run:
    from forensics import pipeline  # noqa: PLC0415 - polars is not on the path of --help

    if source == "-":
        return pipeline.ingest_stream("stdin", sys.stdin.buffer)
    return pipeline.ingest_run(Path(source))
