"""Read a run into tables and keep them as Parquet.

polars, pandas and DuckDB open them as they are. A second time, only the files whose content changed are read again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forensics.cli import _options as opt
from forensics.cli._answer import Answer, lines
from forensics.cli._exit import Gate
from forensics.errors import ExitCode

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory, or one file.")]


def command(  # noqa: PLR0913 - each is an option of the command line
    run: RunArgument,
    *,
    store: opt.StoreOption = None,
    format_: opt.FormatOption = "text",
    out: opt.OutOption = None,
    force: opt.ForceOption = False,
    exit_zero: opt.ExitZeroOption = False,
    strict: opt.StrictOption = False,
    verbose: opt.VerboseOption = False,
) -> Answer:
    """Read a run into the store and say what is in it; exit 3 when nothing was recognised."""
    from forensics import pipeline  # noqa: PLC0415 - polars is not on the path of --help
    from forensics.report import ingested  # noqa: PLC0415 - same
    from forensics.store import disk  # noqa: PLC0415 - same

    output = opt.Output(format_, out, force, verbose=verbose).checked(ingested.FORMATS)
    place = store if store is not None else disk.default_place()
    summary = ingested.summary_of(pipeline.ingest_run(run, store=place), str(place / disk.run_key(run)))
    code = Gate(exit_zero=exit_zero, strict=strict).code(
        ExitCode.OK if summary.recognised else ExitCode.CANNOT_SAY, [summary.coverage]
    )
    return Answer(lines(ingested.render(summary, output.format, output.style)), code, out, force)
