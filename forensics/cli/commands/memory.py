"""Show how memory moved: series, snapshots, leaks, OOM; two: diff.

INPUT is a run directory, a log or a memory snapshot. With two, the second is compared with the first.

Exit codes: 0 memory is level; 1 it ran out, grows or leaks; 3 cannot say.
"""

from __future__ import annotations

from typing import Annotated

import typer

from forensics.cli._answer import Answer
from forensics.cli._shared import Shared, reads_runs
from forensics.errors import ExitCode, UsageError

InputsArgument = Annotated[list[str], typer.Argument(metavar="INPUT...", help="One run or snapshot, or two of them.")]
_MOST = 2


@reads_runs("text", "json", "markdown")
def command(inputs: InputsArgument, *, shared: Shared) -> Answer:
    """Show how the memory of a run moved, or what differs between two; raises `UsageError` for more than two inputs."""
    from forensics.analyses.coverage import coverage_of  # noqa: PLC0415 - same
    from forensics.diagnosis.memory import memory_of  # noqa: PLC0415 - polars is not on the path of --help
    from forensics.report.pages import memory as page  # noqa: PLC0415 - same
    from forensics.store.gather import issues_of  # noqa: PLC0415 - same

    if len(inputs) > _MOST:
        message = f"{len(inputs)} inputs were given"
        raise UsageError(message, help="forensics memory RUN, or forensics memory BASE CANDIDATE")
    runs = [shared.reading.one(path) for path in inputs]
    run, base = runs[-1], runs[0] if len(runs) == _MOST else None
    found = memory_of(run, base)
    shown = page.Page(found, coverage=coverage_of(run), issues=issues_of(run))
    code = ExitCode.CANNOT_SAY if found.empty else ExitCode.FINDINGS if found.bad else ExitCode.OK
    return shared.answer(shown, page.LAYOUT.render, code, *runs)
