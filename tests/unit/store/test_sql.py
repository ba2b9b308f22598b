"""Questions in SQL are answered as polars answers them; what is wrong is said with what there is."""

from __future__ import annotations

import math
import sys
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.errors import UsageError
from forensics.store.run import Run, run_of
from forensics.store.sql import ask

HAS_DUCKDB = find_spec("duckdb") is not None
ENGINES = ["polars", pytest.param("duckdb", marks=pytest.mark.skipif(not HAS_DUCKDB, reason="duckdb is not installed"))]


@pytest.fixture
def run() -> Run:
    frame = pl.DataFrame(
        {"name": ["loss", "loss", "lr", "lr"], "step": [1, 2, 1, 2], "value": [2.5, math.nan, 0.1, None]}
    )
    return run_of("made", {"metrics": frame})


@pytest.mark.parametrize("engine", ENGINES)
def test_a_question_is_answered(run: Run, engine: str) -> None:
    rows = ask(run, "SELECT name, step, value FROM metrics WHERE name = 'loss' ORDER BY step", engine).rows()
    assert rows[0] == ("loss", 1, 2.5)
    assert rows[1][:2] == ("loss", 2)
    assert math.isnan(rows[1][2])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_null_stays_a_null(run: Run, engine: str) -> None:
    assert ask(run, "SELECT value FROM metrics WHERE name = 'lr' AND step = 2", engine).rows() == [(None,)]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_that_nothing_wrote_is_empty(run: Run, engine: str) -> None:
    assert ask(run, "SELECT count(*) AS n FROM evals", engine)["n"].to_list() == [0]


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE metrics",
        "/* only a look */ DELETE FROM metrics",
        "-- a\nCREATE TABLE t AS SELECT 1",
        "COPY metrics TO 'x.csv'",
        "update metrics SET value = 0",
        "SET lock_configuration = false",
    ],
)
def test_a_query_changes_nothing(run: Run, sql: str) -> None:
    with pytest.raises(UsageError, match="it changes nothing"):
        ask(run, sql)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "sql", ["SELECT valu FROM metrics", "SELECT * FROM metrics WHERE", "SELECT sum(name, 3, 4) FROM metrics"]
)
def test_what_is_wrong_is_said_with_the_columns_there_are(run: Run, sql: str, engine: str) -> None:
    with pytest.raises(UsageError, match=r"^SQL: ") as refused:
        ask(run, sql, engine)
    assert "\n" not in refused.value.message
    assert refused.value.help.startswith("columns of metrics: source, attempt,")


@pytest.mark.parametrize("sql", ["", "SELEC 1", "SELECT 1; SELECT 2", "SELECT * FROM metric", "(" * 500])
def test_what_names_no_table_is_told_the_tables(run: Run, sql: str) -> None:
    with pytest.raises(UsageError) as refused:
        ask(run, sql)
    assert refused.value.help.startswith("the tables are sources, issues,")


@given(st.text(max_size=60))
def test_any_text_is_an_answer_or_a_usage_error(sql: str) -> None:
    try:
        answer = ask(run_of("made", {}), sql)
    except UsageError as error:
        answer = error
    assert isinstance(answer, pl.DataFrame) or answer.help


def test_duckdb_that_is_not_there_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(UsageError, match="duckdb is not installed") as refused:
        ask(run, "SELECT 1", "duckdb")
    assert "pip install duckdb" in refused.value.help


@pytest.mark.skipif(not HAS_DUCKDB, reason="duckdb is not installed")
@pytest.mark.parametrize(
    "sql", ["SELECT * FROM glob('/*')", "SELECT 1; COPY (SELECT 1) TO '{path}'", "SELECT 1; LOAD httpfs"]
)
def test_duckdb_has_no_way_to_the_disk(run: Run, tmp_path: Path, sql: str) -> None:
    with pytest.raises(UsageError, match="SQL: "):
        ask(run, sql.format(path=tmp_path / "out.csv"), "duckdb")
    assert not list(tmp_path.iterdir())
