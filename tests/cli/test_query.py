"""`forensics query`: what it prints, what it refuses, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Call

HOSTILE = ("\x1b[31mloss", "\u202eloss", "=cmd()", "two\nlines")


@pytest.fixture
def hostile_run(tmp_path: Path) -> Path:
    folder = tmp_path / "hostile"
    folder.mkdir()
    rows = ({"step": step, **dict.fromkeys(HOSTILE, 1.5)} for step in range(1, 5))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def test_the_first_bad_step_is_one_question(call: Call, nan_run: Path) -> None:
    done = call("query", nan_run, "SELECT min(step) AS step FROM metrics WHERE name = 'loss' AND value_class = 'nan'")
    assert (done.code, done.out, done.err) == (0, "step\n  51\n", "")


def test_without_sql_the_tables_are_listed(call: Call, nan_run: Path) -> None:
    done = call("query", nan_run)
    assert done.code == 0
    assert "metrics     160 rows: source, attempt, rank," in done.out
    assert all(len(line) <= 80 for line in done.out.splitlines())
    listed = call("query", nan_run, "-f", "json").document["rows"]
    assert call("query", nan_run, "SELECT 1 AS one", "-f", "json").document["coverage"]["lost_bytes"] == 0
    assert {"table": "metrics", "rows": 160, "column": "value", "type": "Float64"} in listed
    assert call("query", nan_run, "-f", "csv").out.startswith("table,rows,column,type\nsources,1,source,String\n")


def test_one_file_is_a_run_too(call: Call, nan_run: Path) -> None:
    assert call("query", nan_run / "metrics.jsonl", "SELECT count(*) AS n FROM metrics").out == "  n\n160\n"


def test_text_shows_fifty_rows_and_says_how_many_more(call: Call, nan_run: Path) -> None:
    sql = "SELECT step, value FROM metrics"
    lines = call("query", nan_run, sql).out.splitlines()
    assert (len(lines), lines[-1]) == (52, "... and 110 more rows: --limit 0 shows all")
    assert len(call("query", nan_run, sql, "--limit", 0).out.splitlines()) == 161
    assert len(call("query", nan_run, sql, "--limit", 3).out.splitlines()) == 5
    assert len(call("query", nan_run, sql, "-f", "jsonl").out.splitlines()) == 160
    assert len(call("query", nan_run, sql, "-f", "csv", "--limit", 3).out.splitlines()) == 4


def test_nan_is_never_null(call: Call, nan_run: Path) -> None:
    sql = "SELECT value, epoch FROM metrics WHERE step = 60 AND name = 'loss'"
    assert call("query", nan_run, sql, "-f", "csv").out == "value,epoch\nNaN,\n"
    assert call("query", nan_run, sql, "-f", "json").document["rows"] == [{"value": "NaN", "epoch": None}]
    assert call("query", nan_run, sql, "-f", "jsonl").out == '{"value":"NaN","epoch":null}\n'


@pytest.mark.parametrize("form", ["text", "csv"])
def test_no_name_of_a_metric_directs_the_terminal(call: Call, hostile_run: Path, form: str) -> None:
    done = call("query", hostile_run, "SELECT DISTINCT raw_name FROM metrics", "-f", form)
    assert not set(done.out) & set("\x1b\u202e")
    assert r"two\nlines" in done.out


@pytest.mark.parametrize(
    ("sql", "words", "help_line"),
    [
        ("SELECT loss FROM metrics", "loss", "columns of metrics: source,"),
        ("SELECT * FROM metric", "metric", "the tables are sources,"),
        ("SELECT * FROM read_csv('x\x1b.csv')", "no function in FROM", "the tables are sources,"),
        ("DELETE FROM metrics", "it changes nothing", "columns of metrics: source,"),
    ],
)
def test_a_wrong_question_is_2_and_says_what_there_is(
    call: Call, nan_run: Path, sql: str, words: str, help_line: str
) -> None:
    done = call("query", nan_run, sql)
    assert (done.code, done.out) == (2, "")
    error, help_said = done.err.splitlines()
    assert words in error
    assert help_line in help_said
    assert "\x1b" not in done.err


@pytest.mark.parametrize(
    "line", ["query {} -f markdown", "query {} --engine spark", "query {} --limit -1", "query nowhere", "query"]
)
def test_a_usage_error_is_2(call: Call, nan_run: Path, line: str) -> None:
    done = call(*line.format(nan_run).split())
    assert (done.code, done.out) == (2, "")
    assert "  help: " in done.err


def test_of_nothing_known_the_code_is_3(call: Call, odd_run: Path) -> None:
    assert call("query", odd_run).code == 3
    assert call("query", odd_run, "SELECT count(*) AS n FROM metrics").code == 3
    assert call("query", odd_run, "--exit-zero").code == 0


def test_a_loss_is_noted_and_strict_makes_it_4(call: Call, good_run: Path) -> None:
    path = good_run / "metrics.jsonl"
    path.write_text(path.read_text(encoding="utf-8") + '{"step": 81, "lo', encoding="utf-8")
    done = call("query", good_run, "SELECT 1 AS one")
    assert done.code == 0
    assert "bytes of the run could not be read" in done.err
    assert call("query", good_run, "SELECT 1 AS one", "--strict").code == 4


def test_the_answer_goes_to_a_file_whole(call: Call, nan_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    done = call("query", nan_run, "SELECT 1 AS one", "-f", "csv", "-o", out)
    assert (done.code, done.out, out.read_text(encoding="utf-8")) == (0, "", "one\n1\n")
    assert call("query", nan_run, "SELECT 1 AS one", "-o", out).code == 2
