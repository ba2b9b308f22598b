"""Read a run into tables and keep them as Parquet.

polars, pandas and DuckDB open them as they are. A second time, only the files whose content changed are read again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from forensics.cli._answer import Answer
from forensics.cli._shared import Shared, reads_runs
from forensics.errors import ExitCode

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="A run directory, or one file.")]


@reads_runs("text", "json", "markdown")
def command(run: RunArgument, *, shared: Shared) -> Answer:
    """Read a run into the store and say what is in it; exit 3 when nothing was recognised."""
    from forensics.report.pages import ingested  # noqa: PLC0415 - polars is not on the path of --help
    from forensics.store import disk  # noqa: PLC0415 - same

    place = shared.store if shared.store is not None else disk.default_place()
    read = replace(shared.reading, store=place).run(run)
    summary = ingested.summary_of(read, str(place / disk.run_key(run)))
    code = ExitCode.OK if summary.recognised else ExitCode.CANNOT_SAY
    return shared.answer(summary, ingested.render, code, read)
