"""SQL over the tables of a run: a question that reads, in polars or in DuckDB, and no way from it to a file.

Both engines know functions that open any file or address. None of them gets the text of a user: a guard
lets one SELECT over the tables of the run through and writes it anew (`_sql_select.py`). Behind it is a second wall:
polars plans the statement over empty tables first, and a plan that reads anything else is refused; DuckDB gets copies
of the tables, and then its access to all else is switched off.
"""

from __future__ import annotations

import re
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import polars as pl

from forensics.errors import UsageError
from forensics.patterns import lazily
from forensics.store._sql_select import Select, refused, select_of
from forensics.store.run import Run
from forensics.store.schema import TABLES

ENGINES = ("polars", "duckdb")
_COLUMNS = frozenset(column for columns in TABLES.values() for column in columns)
#: How a plan of polars tells a source that is not a frame in memory: `Csv SCAN [/etc/hosts]`.
_SCAN = lazily(r"^\W*[\w ]*\bSCAN\b", re.MULTILINE)
_LOCKS = (
    "temp_directory=''",
    "enable_external_access=false",
    "autoload_known_extensions=false",
    "python_enable_replacements=false",
    "lock_configuration=true",
)


def ask(run: Run, sql: str, engine: str = "polars") -> pl.DataFrame:
    """Answer one question; nothing is changed, and nothing but the tables of the run is read.

    Raises `UsageError` when the SQL is wrong, names anything but the tables, or DuckDB is not installed.
    """
    try:
        select = select_of(sql, TABLES.keys(), _COLUMNS)
    except UsageError as error:
        raise _wrong(sql, error.message) from error
    if engine == "duckdb":
        return _ask_duckdb(run, select)
    try:
        check_plan(select)
        frames = {name: run.scan(name) for name in select.tables}
        return pl.SQLContext(frames, eager=False).execute(select.sql).collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise _wrong(sql, f"SQL: {_first_line(error)}") from error


def check_plan(select: Select) -> None:
    """Plan a statement over empty tables in memory: then nothing in its plan may be read from anywhere.

    Raises `UsageError` when the plan reads a file.
    """
    empty = {name: pl.LazyFrame(schema=dict(TABLES[name])) for name in select.tables}
    plan = pl.SQLContext(empty, eager=False).execute(select.sql).explain(optimized=False)
    if _SCAN.search(plan) is not None:
        raise refused("the statement reads a file")


def _ask_duckdb(run: Run, select: Select) -> pl.DataFrame:
    try:
        duckdb: Any = import_module("duckdb")
    except ImportError as error:
        raise UsageError(
            "--engine duckdb: duckdb is not installed", help="pip install duckdb, or leave it out"
        ) from error
    with duckdb.connect(":memory:") as connection, tempfile.TemporaryDirectory(prefix="forensics-") as folder:
        for name in sorted(select.tables):
            path = Path(folder) / f"{name}.parquet"
            run.collect(name).write_parquet(path)
            connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM read_parquet(?)', [str(path)])  # noqa: S608 - a name of our schema
        for lock in _LOCKS:
            connection.execute(f"SET {lock}")
        try:
            answer = connection.execute(select.sql)
            names = [str(column[0]) for column in answer.description or ()]
            rows = cast("list[tuple[Any, ...]]", answer.fetchall())
        except duckdb.Error as error:
            raise _wrong(select.sql, f"SQL: {_first_line(error)}") from error
    unique = [name if names.index(name) == i else f"{name}_{i}" for i, name in enumerate(names)]
    return pl.DataFrame(rows, schema=unique, orient="row", infer_schema_length=None)


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0] or type(error).__name__


def _wrong(sql: str, message: str) -> UsageError:
    named = [table for table in TABLES if re.search(rf"\b{table}\b", sql, re.IGNORECASE)]
    if not named:
        return UsageError(message, help=f"the tables are {', '.join(TABLES)}")
    return UsageError(message, help="; ".join(f"columns of {t}: {', '.join(TABLES[t])}" for t in named))
