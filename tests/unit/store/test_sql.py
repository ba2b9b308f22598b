"""Questions in SQL are answered; what opens a file or changes anything is refused, however it is spelled."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.errors import UsageError
from forensics.store.run import Run, run_of
from forensics.store.sql import ask

HAS_DUCKDB = importlib.util.find_spec("duckdb") is not None
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


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "call",
    [
        "read_csv('{path}')",
        "READ_CSV('{path}')",
        'read_csv ("{path}")',
        "\"read_csv\"('{path}')",
        "`read_csv`('{path}')",
        "read_csv/* ( */('{path}')",
        "read_csv /* a /* nested */ b */ ('{path}')",
        "read_csv -- (\n('{path}')",
        "read_parquet('{path}')",
        "read_ipc('{path}')",
        "read_json('{path}')",
        "scan_csv('{path}')",
    ],
)
def test_no_query_opens_a_file(run: Run, tmp_path: Path, call: str, engine: str) -> None:
    bait = tmp_path / "bait.csv"
    bait.write_text("secret\n1\n")
    with pytest.raises(UsageError, match="opens a file"):
        ask(run, f"SELECT * FROM {call.format(path=bait)}", engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["'{path}'", '"{path}"'])
def test_a_path_is_no_table(run: Run, tmp_path: Path, name: str, engine: str) -> None:
    bait = tmp_path / "bait.csv"
    bait.write_text("secret\n1\n")
    with pytest.raises(UsageError, match="SQL: "):
        ask(run, f"SELECT * FROM {name.format(path=bait)}", engine)


@given(
    st.sampled_from(["read_csv", "Read_Parquet", "read_json", "read_ipc"]),
    st.sampled_from(["", '"', "`"]),
    st.lists(st.sampled_from([" ", "\t", "\n", "/* x */", "/**/", "-- y\n", "/* /* */ */"]), max_size=4).map("".join),
)
def test_no_spelling_of_a_file_function_gets_through(name: str, quote: str, between: str) -> None:
    with pytest.raises(UsageError, match="opens a file"):
        ask(run_of("made", {}), f"SELECT * FROM {quote}{name}{quote}{between}('/nowhere/at/all.csv')")


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
