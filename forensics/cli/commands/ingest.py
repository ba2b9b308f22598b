"""Read a run into tables and keep them as Parquet.

polars, pandas and DuckDB open them as they are. A second time, only the files whose content changed are read again.
"""

from __future__ import annotations

from typing import Annotated

import typer

from forensics.cli import _options as opt
from forensics.cli._answer import Answer
from forensics.cli._shared import Shared, reads_runs
from forensics.errors import ExitCode
from forensics.values import replace

ShardOption = Annotated[
    str | None,
    typer.Option(
        "--shard",
        metavar="I/N|auto",
        help="Read share I of N of the files (0 to N-1); auto asks a Slurm array, auto/N an indexed Job of Kubernetes.",
    ),
]


@reads_runs("text", "json", "markdown")
def command(run: opt.RunArgument, *, shard: ShardOption = None, shared: Shared) -> Answer:
    """Read a run, or a share of its files, into the store and say what is in it; exit 3 when nothing was recognised."""
    from forensics.report.pages import ingested  # noqa: PLC0415 - polars is not on the path of --help
    from forensics.store import disk  # noqa: PLC0415 - same

    place = shared.store if shared.store is not None else disk.default_place()
    reading = replace(shared.reading, store=place)
    read = reading.run(run) if shard is None else reading.shard(run, shard)
    summary = ingested.summary_of(read, str(place / disk.run_key(run)))
    code = ExitCode.OK if summary.recognised or shard is not None else ExitCode.CANNOT_SAY
    return shared.answer(summary, ingested.render, code, read)
