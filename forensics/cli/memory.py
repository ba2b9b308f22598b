"""Show how memory moved: series, snapshots, leaks, OOM; two: diff.

INPUT is a run directory, a log or a memory snapshot. With two, the second is compared with the first.

Exit codes: 0 memory is level; 1 it ran out, grows or leaks; 3 cannot say.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forensics.cli import _options as opt
from forensics.cli._answer import Answer, lines
from forensics.cli._exit import Gate
from forensics.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from forensics.memory import Memory

InputsArgument = Annotated[list[Path], typer.Argument(metavar="INPUT...", help="One run or snapshot, or two of them.")]
_MOST = 2


def command(  # noqa: PLR0913 - each is an option of the command line
    inputs: InputsArgument,
    *,
    format_: opt.FormatOption = "text",
    out: opt.OutOption = None,
    force: opt.ForceOption = False,
    exit_zero: opt.ExitZeroOption = False,
    strict: opt.StrictOption = False,
    color: opt.ColorOption = "auto",
    verbose: opt.VerboseOption = False,
) -> Answer:
    """Show how the memory of a run moved, or what differs between two.

    Raises:
        UsageError: for more than two inputs.
    """
    from forensics import pipeline  # noqa: PLC0415 - polars is not on the path of --help
    from forensics.memory import memory_of  # noqa: PLC0415 - same
    from forensics.report import memory as page  # noqa: PLC0415 - same
    from forensics.store.gather import coverage_of, issues_of  # noqa: PLC0415 - same

    output = opt.Output(format_, out, force, color, verbose).checked(page.FORMATS)
    if len(inputs) > _MOST:
        message = f"{len(inputs)} inputs were given"
        raise UsageError(message, help="forensics memory RUN, or forensics memory BASE CANDIDATE")
    runs = [pipeline.ingest_run(path) for path in inputs]
    run, base = runs[-1], runs[0] if len(runs) == _MOST else None
    found, coverage = memory_of(run, base), coverage_of(run)
    text = lines(page.render(page.Page(found, coverage, issues_of(run)), output.format, output.style))
    return Answer(text, Gate(exit_zero=exit_zero, strict=strict).code(_code(found), [coverage]), out, force)


def _code(found: Memory) -> ExitCode:
    if found.empty:
        return ExitCode.CANNOT_SAY
    return ExitCode.FINDINGS if found.bad else ExitCode.OK
