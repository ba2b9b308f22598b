"""Ask SQL of a run's tables; without SQL, list tables and columns.

The query only reads: it changes nothing and opens no file. NaN is printed as NaN, null as an empty cell.
"""

from __future__ import annotations

from typing import Annotated

import typer

from forensics.cli import _options as opt
from forensics.cli._answer import Answer, losses
from forensics.cli._shared import Shared, reads_runs
from forensics.errors import ExitCode, UsageError
from forensics.values import replace

SqlArgument = Annotated[str | None, typer.Argument(metavar="SQL", help="As 'SELECT name, max(value) FROM metrics …'.")]
LimitOption = Annotated[
    int | None, typer.Option("--limit", metavar="N", help="At most N rows; 0 for all, as all formats but text give.")
]
EngineOption = Annotated[str, typer.Option("--engine", metavar="ENGINE", help="polars, or duckdb if it is installed.")]
_TEXT_ROWS = 50


@reads_runs("text", "csv", "json", "jsonl", without=("verbose", "engine"))
def command(
    run: opt.RunArgument,
    sql: SqlArgument = None,
    *,
    limit: LimitOption = None,
    engine: EngineOption = "polars",
    shared: Shared,
) -> Answer:
    """Answer one question about a run, or list what can be asked; exit 3 when nothing was recognised."""
    import polars as pl  # noqa: PLC0415 - not on the path of --help

    from forensics.report import rows  # noqa: PLC0415 - same
    from forensics.report.pages import ingested  # noqa: PLC0415 - same
    from forensics.store import sql as engines  # noqa: PLC0415 - same
    from forensics.store.schema import TABLES  # noqa: PLC0415 - same

    opt.one_of("--engine", engine, engines.ENGINES)
    if limit is not None and limit < 0:
        raise UsageError(f"--limit: {limit} is below 0", help="forensics query --help")
    most = limit if limit is not None else _TEXT_ROWS if shared.format_ == "text" else 0
    read = shared.reading.run(run)
    asked = engines.ask(read, sql, engine) if sql is not None else None  # a refused statement waits for no count
    summary = ingested.summary_of(read, "")
    code = ExitCode.OK if summary.recognised else ExitCode.CANNOT_SAY
    if asked is None:
        every = [
            (t, summary.rows[t], name, str(kind)) for t, columns in TABLES.items() for name, kind in columns.items()
        ]
        found = shown = pl.DataFrame(every, schema=["table", "rows", "column", "type"], orient="row")
    else:
        found, shown = asked, asked.head(most) if most else asked
    page = rows.Page(shown, found.height, coverage=summary.coverage, issues=summary.issues)
    answer = shared.answer(page, rows.render if asked is not None else rows.render_tables, code, read)
    return replace(answer, notes=losses(summary.coverage))
