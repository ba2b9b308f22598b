"""Ask SQL of a run's tables; without SQL, list tables and columns.

The query only reads: it changes nothing and opens no file. NaN is printed as NaN, null as an empty cell.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forensics.cli import _options as opt
from forensics.cli._answer import Answer, lines
from forensics.cli._exit import Gate
from forensics.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from forensics.report._style import Style
    from forensics.store.run import Run

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory, or one file.")]
SqlArgument = Annotated[str | None, typer.Argument(metavar="SQL", help="As 'SELECT name, max(value) FROM metrics …'.")]
FormatOption = Annotated[str, typer.Option("--format", "-f", metavar="FORMAT", help="text, csv, json or jsonl.")]
LimitOption = Annotated[
    int | None, typer.Option("--limit", metavar="N", help="At most N rows; 0 for all, as all formats but text give.")
]
EngineOption = Annotated[str, typer.Option("--engine", metavar="ENGINE", help="polars, or duckdb if it is installed.")]
_TEXT_ROWS = 50


def command(  # noqa: PLR0913 - each is an option of the command line
    run: RunArgument,
    sql: SqlArgument = None,
    *,
    limit: LimitOption = None,
    engine: EngineOption = "polars",
    store: opt.StoreOption = None,
    format_: FormatOption = "text",
    out: opt.OutOption = None,
    force: opt.ForceOption = False,
    color: opt.ColorOption = "auto",
    exit_zero: opt.ExitZeroOption = False,
    strict: opt.StrictOption = False,
) -> Answer:
    """Answer one question about a run, or list what can be asked; exit 3 when nothing was recognised."""
    from forensics import pipeline  # noqa: PLC0415 - polars is not on the path of --help
    from forensics.report import ingested, rows  # noqa: PLC0415 - same
    from forensics.report._payload import read_payload  # noqa: PLC0415 - same
    from forensics.store import sql as engines  # noqa: PLC0415 - same

    output = opt.Output(format_, out, force, color).checked(rows.FORMATS)
    opt.one_of("--engine", engine, engines.ENGINES)
    most = _limit(limit, format_)
    read = pipeline.ingest_run(run, store=store)
    summary = ingested.summary_of(read, "")
    account = read_payload(summary.coverage, summary.issues)
    if sql is None:
        text = _listed(read, output.format, output.style, account)
    else:
        found = engines.ask(read, sql, engine)
        shown = found.head(most) if most else found
        text = lines(rows.render(shown, found.height, output.format, output.style, account=account))
    lost = f"{summary.coverage.lost_bytes} bytes of the run could not be read: forensics ingest -v shows where"
    code = ExitCode.OK if summary.recognised else ExitCode.CANNOT_SAY
    code = Gate(exit_zero=exit_zero, strict=strict).code(code, [summary.coverage])
    return Answer(text, code, out, force, (lost,) if summary.coverage.lost_bytes else ())


def _limit(limit: int | None, form: str) -> int:
    if limit is not None and limit < 0:
        message = f"--limit: {limit} is below 0"
        raise UsageError(message, help="forensics query --help")
    if limit is None:
        return _TEXT_ROWS if form == "text" else 0
    return limit


def _listed(run: Run, form: str, style: Style, account: dict[str, Any]) -> str:
    """Every table with its rows and columns: wrapped for people, a row per column for programs."""
    import polars as pl  # noqa: PLC0415 - not on the path of --help

    from forensics.report import rows  # noqa: PLC0415 - same
    from forensics.store.schema import TABLES  # noqa: PLC0415 - same

    counts = {table: int(run.scan(table).select(pl.len()).collect().item()) for table in TABLES}
    if form == "text":
        said = {table: f"{counts[table]:,} rows: {', '.join(columns)}" for table, columns in TABLES.items()}
        return lines(line for table, text in said.items() for line in style.field(table, text))
    every = [(t, counts[t], name, str(dtype)) for t, columns in TABLES.items() for name, dtype in columns.items()]
    found = pl.DataFrame(every, schema=["table", "rows", "column", "type"], orient="row")
    return lines(rows.render(found, found.height, form, style, account=account))
