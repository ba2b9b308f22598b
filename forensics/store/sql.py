"""SQL over the tables of a run: a question that reads, in polars or in DuckDB, and no way from it to a file.

The SQL of polars knows table functions (`read_csv('…')`) that open any file; a query is refused where one stands, also
inside quotes or before a comment. DuckDB has them switched off after the tables were loaded.
"""

from __future__ import annotations

import re
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import polars as pl

from forensics.errors import UsageError
from forensics.store.run import Run
from forensics.store.schema import TABLES

ENGINES = ("polars", "duckdb")
_FILE_FUNCTION = re.compile(r"\b((?:read|scan|write)_[a-z0-9_]+)[\"`]?\s*(?:\(|/\*|--|#)", re.IGNORECASE)
_CHANGES = re.compile(
    r"(?:\s|/\*.*?\*/|--[^\n]*\n)*(alter|attach|copy|create|delete|drop|insert|install|load|pragma|set|truncate|update)\b",
    re.IGNORECASE | re.DOTALL,
)
_HELP = "forensics query RUN lists tables and columns"


def ask(run: Run, sql: str, engine: str = "polars") -> pl.DataFrame:
    """Answer one question; nothing is changed, and no file but those of the run is read.

    Raises:
        UsageError: when the SQL is wrong, would change something or opens a file, or DuckDB is not installed.
    """
    if (found := _FILE_FUNCTION.search(sql)) is not None:
        message = f"{found[1]} opens a file, and a query reads only the tables of the run"
        raise UsageError(message, help=_HELP)
    if (change := _CHANGES.match(sql)) is not None:
        message = f"{change[1]}: a query reads, it changes nothing"
        raise UsageError(message, help=_HELP)
    if engine == "duckdb":
        return _ask_duckdb(run, sql)
    try:
        return pl.SQLContext({name: run.scan(name) for name in TABLES}, eager=False).execute(sql).collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise _wrong(sql, error) from error


def _ask_duckdb(run: Run, sql: str) -> pl.DataFrame:
    try:
        duckdb: Any = import_module("duckdb")
    except ImportError as error:
        raise UsageError(
            "--engine duckdb: duckdb is not installed", help="pip install duckdb, or leave it out"
        ) from error
    with duckdb.connect(":memory:") as connection, tempfile.TemporaryDirectory(prefix="forensics-") as folder:
        for name in TABLES:
            path = Path(folder) / f"{name}.parquet"
            run.collect(name).write_parquet(path)
            connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM read_parquet(?)', [str(path)])  # noqa: S608 - a name of our schema
        for lock in ("enable_external_access=false", "python_enable_replacements=false", "lock_configuration=true"):
            connection.execute(f"SET {lock}")
        try:
            answer = connection.execute(sql)
            names = [str(column[0]) for column in answer.description or ()]
            rows = cast("list[tuple[Any, ...]]", answer.fetchall())
        except duckdb.Error as error:
            raise _wrong(sql, error) from error
    unique = [name if names.index(name) == i else f"{name}_{i}" for i, name in enumerate(names)]
    return pl.DataFrame(rows, schema=unique, orient="row", infer_schema_length=None)


def _wrong(sql: str, error: BaseException) -> UsageError:
    message = str(error).strip().split("\n", 1)[0] or type(error).__name__
    named = [table for table in TABLES if re.search(rf"\b{table}\b", sql, re.IGNORECASE)]
    if not named:
        return UsageError(f"SQL: {message}", help=f"the tables are {', '.join(TABLES)}")
    return UsageError(f"SQL: {message}", help="; ".join(f"columns of {t}: {', '.join(TABLES[t])}" for t in named))
