"""Ask SQL of a run's tables; without SQL, list tables and columns.

The query only reads: it changes nothing and opens no file. NaN is printed as NaN, null as an empty cell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from forensics.cli import _options as opt
from forensics.cli._answer import Answer, losses
from forensics.cli._shared import Shared, reads_runs
from forensics.errors import ExitCode, UsageError
from forensics.values import replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

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
    from forensics.report import rows  # noqa: PLC0415 - polars is not on the path of --help
    from forensics.report.pages import ingested  # noqa: PLC0415 - polars is not on the path of --help
    from forensics.store import sql as engines  # noqa: PLC0415 - same

    opt.one_of("--engine", engine, engines.ENGINES)
    most = _limit(limit, shared.format_)
    read = shared.reading.run(run)
    asked = engines.ask(read, sql, engine) if sql is not None else None  # a refused statement waits for no count
    summary = ingested.summary_of(read, "")
    code = ExitCode.OK if summary.recognised else ExitCode.CANNOT_SAY
    if asked is None:
        found = _columns(summary.rows)
        page = rows.Page(found, found.height, coverage=summary.coverage, issues=summary.issues)
        answer = shared.answer(page, rows.render_tables, code, read)
    else:
        shown = asked.head(most) if most else asked
        page = rows.Page(shown, asked.height, coverage=summary.coverage, issues=summary.issues)
        answer = shared.answer(page, rows.render, code, read)
    return replace(answer, notes=losses(summary.coverage))


def _limit(limit: int | None, form: str) -> int:
    if limit is not None and limit < 0:
        raise UsageError(f"--limit: {limit} is below 0", help="forensics query --help")
    if limit is None:
        return _TEXT_ROWS if form == "text" else 0
    return limit


def _columns(counts: Mapping[str, int]) -> pl.DataFrame:
    """One row for each column of each table, with the rows that the table has."""
    import polars as pl  # noqa: PLC0415 - not on the path of --help

    from forensics.store.schema import TABLES  # noqa: PLC0415 - same

    every = [(t, counts[t], name, str(dtype)) for t, columns in TABLES.items() for name, dtype in columns.items()]
    return pl.DataFrame(every, schema=["table", "rows", "column", "type"], orient="row")
