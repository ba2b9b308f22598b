"""A query sees the tables of the run and nothing else: no spelling of a statement opens a file or an address."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.cli.main import run as forensics
from forensics.errors import UsageError
from forensics.store import sql
from forensics.store._sql_select import Select, select_of
from forensics.store.run import run_of
from forensics.store.schema import TABLES

HAS_DUCKDB = find_spec("duckdb") is not None
ENGINES = ["polars", pytest.param("duckdb", marks=pytest.mark.skipif(not HAS_DUCKDB, reason="duckdb is not installed"))]
IN_OPEN = 0x20

#: `{f}` is a file that nobody may open, `{u}` an address that nobody may connect to.
AS_RELATIONS = (
    # a function of tables, in every spelling of its name
    "read_csv('{f}')", "READ_CSV('{f}')", "'read_csv'('{f}')", "\"read_csv\"('{f}')", "`read_csv`('{f}')",
    "[read_csv]('{f}')", "$$read_csv$$('{f}')", "$x$read_csv$x$('{f}')", "U&\"read\\005fcsv\"('{f}')",
    "E'read_csv'('{f}')", "read_csv/**/('{f}')", "read_csv/* a /* b */ c */('{f}')", "read_csv--\n('{f}')",
    "read_csv#\n('{f}')", "main.read_csv('{f}')", "\"main\".\"read_csv\"('{f}')", "(read_csv('{f}'))",
    "(((read_csv('{f}'))))", 'read_csv("{f}")', "read_csv('{f}') as metrics", "read_csv\u00a0('{f}')",
    "\uff52ead_csv('{f}')", "re\u200bad_csv('{f}')", "read_csv('{f}', has_header => false)",
    # every function that the engines have
    "read_csv_auto('{f}')", "read_parquet('{f}')", "read_ipc('{f}')", "read_json('{f}')", "read_ndjson('{f}')",
    "read_json_auto('{f}')", "read_text('{f}')", "read_blob('{f}')", "read_delta('{f}')", "parquet_scan('{f}')",
    "scan_csv('{f}')", "scan_parquet('{f}')", "scan_iceberg('{f}')", "delta_scan('{f}')", "iceberg_scan('{f}')",
    "sniff_csv('{f}')", "parquet_metadata('{f}')", "parquet_schema('{f}')", "sqlite_scan('{f}', 't')",
    "glob('{f}')", "query('select * from ''{f}''')", "query_table('{f}')", "duckdb_settings()", "pragma_version()",
    "pragma_table_info('metrics')", "duckdb_functions()", "unnest(['{f}'])", "generate_series(1, 3)", "range(3)",
    "lateral read_csv('{f}')", "lateral (select * from read_csv('{f}'))", "table(read_csv('{f}'))",
    "table read_csv('{f}')", "rows from (read_csv('{f}'))", "json_table('{f}', '$')", "arrow_scan(1, 2, 3)",
    # a file by its name alone
    "'{f}'", '"{f}"', "`{f}`", "[{f}]", "$${f}$$", "{f}", 'main."{f}"', "'{f}' as metrics", "('{f}')",
    '"/etc/passwd"', "'/etc/hosts'", "file.csv", "'file://{f}'", "'*.csv'",
    # behind a table of the run
    "metrics, read_csv('{f}')", "metrics, '{f}'", "metrics m, lateral read_csv('{f}')",
    "metrics join read_csv('{f}') r on true", "metrics cross join '{f}'", 'metrics natural join "{f}"',
    "metrics left join lateral read_csv('{f}') on true", "metrics positional join '{f}'",
    "metrics asof join '{f}' using (step)", "(metrics join read_csv('{f}') using (step))",
    "metrics tablesample read_csv('{f}')", "metrics at (version => '{f}')", "metrics pivot ('{f}')",
    # the network
    "read_csv('{u}')", "'read_csv'('{u}')", "read_parquet('{u}')", "'{u}'", '"{u}"', "read_csv('s3://a/b.csv')",
    "'s3://a/b.parquet'", "read_parquet('gs://a/b.parquet')", "read_csv('az://a/b.csv')",
    "read_parquet('hf://datasets/a/b.parquet')", "'https://127.0.0.1/x.csv'", "read_csv('abfss://a@b/c.csv')",
    # what the engines know of themselves and of the process
    "information_schema.tables", "pg_catalog.pg_class", "sqlite_master", "duckdb_secrets()", "TABLES", "pl", "frame",
)  # fmt: skip
STATEMENTS = (
    "with c as (select * from read_csv('{f}')) select * from c",
    "with read_csv as (select 1) select * from read_csv('{f}')",
    'with "{f}" as (select 1 as a) select * from "{f}x"', "with recursive c as (select * from '{f}') select * from c",
    "with c as (table '{f}') select * from c", "with c as (copy metrics to '{f}') select 1",
    "with c as (insert into metrics select 1) select 1", "with c as (from '{f}') select * from c",
    "select 1 union all select * from read_csv('{f}')", "select 1 union (select * from '{f}')",
    "(select * from read_csv('{f}'))", "((select * from '{f}'))", "select * from (select * from read_csv('{f}'))",
    "select substring((from '{f}') from 1)",
    "select metrics.is distinct from '{f}'", "select 1 as is, distinct from '{f}'", "select 1 union from '{f}'",
    "select * from (from '{f}')", 'select * from (table "{f}")', "select * from (values (read_csv('{f}')))",
    "select * from (pivot '{f}' on a)", "select * from (describe '{f}')", "select * from (show tables)",
    "select * from (summarize '{f}')", "select (select max(a) from read_csv('{f}'))", "select (from '{f}')",
    "select exists (select 1 from '{f}')", "select exists (from '{f}')", "select 1 where 1 in (select a from '{f}')",
    "select 1 where 1 in '{f}'", "select 1 where 1 = any (from '{f}')", "select array(select a from '{f}')",
    "select array (from '{f}')", "select [x for x in (from '{f}')]", "select case when true then (from '{f}') end",
    "select read_text('{f}')", "select read_blob('{f}').content", "select getenv('HOME')",
    "select current_setting('home')",
    "select getvariable('x')", "select '{f}'::regclass", "select columns((from '{f}')) from metrics",
    "select * from metrics where exists (select * from read_csv('{f}'))", "select * from metrics order by (from '{f}')",
    "select * from metrics limit (select max(a) from '{f}')",
    "select sum(step) over (order by (from '{f}')) from metrics",
    "select count(*) filter (where step in (select a from '{f}')) from metrics", "select '\\' from '{f}' --'",
    "select '\\' , (select a from read_csv('{f}')) --'", "select \"\"\"\" from '{f}'", "select 1 into '{f}'",
    "from '{f}'", "from metrics", "from metrics select *", "table '{f}'", "table metrics", "summarize '{f}'",
    "pivot '{f}' on a", "explain select * from '{f}'", "explain analyze select * from read_csv('{f}')",
    "describe '{f}'",
    "describe metrics", "show tables", "copy metrics to '{f}'", "copy (select 1) to '{f}'", "copy metrics from '{f}'",
    "attach '{f}' as x", "select 1; attach '{f}'", "select 1; select * from '{f}'", "select 1;; select 2",
    "load httpfs",
    "install httpfs", "load '{f}'", "import database '{f}'", "export database '{f}'", "pragma database_list",
    "set home_directory = '{f}'", "reset all", "call pragma_version()", "create table t as select * from '{f}'",
    "create secret (type s3)", "create macro m() as table from '{f}'", "create view v as select * from '{f}'",
    "insert into metrics select * from '{f}'", "update metrics set value = 0", "delete from metrics",
    "drop table metrics", "truncate metrics", "alter table metrics rename to x", "use '{f}'", "prepare p as from '{f}'",
    "execute p", "begin", "checkpoint", "vacuum", "merge into metrics using '{f}' on true when matched then delete",
    "select /* unended from '{f}'", "select 'unended from {f}", 'select "unended from {f}', "select $1 from metrics",
    "select ? from metrics", "select :x from metrics", "select @x from metrics", "select \x00 from '{f}'",
)  # fmt: skip
ESCAPES = tuple(f"select * from {relation}" for relation in AS_RELATIONS) + STATEMENTS


@dataclass
class Trap:
    """A file whose openings are counted by the kernel, and a server that counts who connects."""

    file: Path
    url: str
    watch: int
    calls: list[object] = field(default_factory=list[object])

    def text(self, statement: str) -> str:
        return statement.replace("{f}", str(self.file)).replace("{u}", self.url)

    def opens(self) -> int:
        with contextlib.suppress(BlockingIOError):
            return len(os.read(self.watch, 1 << 16))
        return 0

    def shut(self) -> bool:
        return self.opens() == 0 and not self.calls


@pytest.fixture(scope="module")
def trap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trap]:
    if not sys.platform.startswith("linux"):
        pytest.skip("the kernel counts openings on Linux")
    file = tmp_path_factory.mktemp("trap") / "bait.csv"
    file.write_text("a\n1\n")
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_NONBLOCK)
    assert libc.inotify_add_watch(watch, os.fsencode(file.parent), IN_OPEN) > 0
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.MonkeyPatch.context() as patch:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "AWS_ENDPOINT_URL", "GOOGLE_BASE_URL", "HF_ENDPOINT"):
            patch.setenv(name, url)
        trap = Trap(file, f"{url}/bait.csv", watch)
        threading.Thread(target=_count, args=(server, trap), daemon=True).start()
        yield trap
        os.close(watch)


def _count(server: socket.socket, trap: Trap) -> None:
    with contextlib.suppress(OSError):
        while True:
            caller, address = server.accept()
            trap.calls.append(address)
            caller.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            caller.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    (folder / "metrics.jsonl").write_text("".join(f'{{"step": {i}, "loss": {5 - i}}}\n' for i in range(1, 5)))
    return folder


def test_the_traps_catch_what_an_engine_does_with_such_a_statement(trap: Trap) -> None:
    with pl.SQLContext() as bare:
        assert bare.execute(trap.text("select * from 'read_csv'('{f}')")).collect().rows() == [(1,)]
        assert trap.opens() > 0
        with pytest.raises(Exception, match=r"404|bait\.csv"):
            bare.execute(trap.text("select * from read_csv('{u}')")).collect()
    assert trap.calls
    trap.calls.clear()
    trap.opens()


def test_there_are_many_ways_and_none_is_tried_twice() -> None:
    assert len(set(ESCAPES)) == len(ESCAPES) > 200


@pytest.mark.parametrize("engine", ENGINES)
def test_no_statement_gets_out(trap: Trap, folder: Path, capsys: pytest.CaptureFixture[str], engine: str) -> None:
    out: list[str] = []
    for statement in ESCAPES:
        code = forensics(["query", str(folder), trap.text(statement), "--engine", engine])
        seen = capsys.readouterr()
        if (code, seen.out) != (2, "") or "\n  help: " not in seen.err or not trap.shut():
            out.append(statement)
    assert out == []


@pytest.mark.parametrize("statement", [s for s in ESCAPES if s.startswith("select") and "{f}" in s])
def test_what_gets_past_the_grammar_gives_no_row(trap: Trap, statement: str) -> None:
    with pytest.raises((UsageError, OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException)):
        sql.check_plan(Select(trap.text(statement), frozenset(["metrics"])))
    trap.opens()


def test_a_plan_that_reads_a_file_is_refused(trap: Trap) -> None:
    with pytest.raises(UsageError, match="the statement reads a file"):
        sql.check_plan(Select(trap.text("select a from 'read_csv'('{f}') order by a"), frozenset()))
    trap.opens()


WORDS = r"""
    SELECT FROM WHERE WITH AS UNION ALL JOIN ON USING VALUES TABLE LATERAL IN EXISTS CASE WHEN THEN END ( ) ( )
    , ; . * = + - :: [ ] || NOT IS NULL DISTINCT ORDER BY GROUP LIMIT OVER FILTER CAST EXTRACT TRIM /* */ -- $$
    ` " '
"""
TOKENS = st.one_of(
    st.sampled_from(WORDS.split()),
    st.sampled_from(
        ["metrics", "metrics", "step", "value", "c", "1", "'x'", "read_csv", "'read_csv'", "count", "unnest"]
    ),
    st.sampled_from(["'{f}'", '"{f}"', "`{f}`", "{f}", "'{u}'", "read_csv('{f}')", "'read_csv'('{f}')", "(select 1)"]),
)


@given(
    st.lists(TOKENS, max_size=14), st.sampled_from(["", " "]), st.sampled_from(["", "select * from ", "with c as ("])
)
def test_no_heap_of_tokens_gets_out(trap: Trap, tokens: list[str], between: str, begin: str) -> None:
    with contextlib.suppress(UsageError):
        sql.ask(run_of("made", {}), trap.text(begin + between.join(tokens)))
    assert trap.shut()


@given(st.lists(TOKENS, max_size=14))
def test_what_is_written_anew_is_read_as_the_same_again(tokens: list[str]) -> None:
    try:
        once = select_of("select * from " + " ".join(tokens), TABLES.keys(), frozenset())
    except UsageError:
        return
    assert select_of(once.sql, TABLES.keys(), frozenset()) == once


@pytest.mark.parametrize("depth", [49, 500, 5_000])
def test_brackets_nest_only_so_deep(depth: int) -> None:
    for opens, closes, inner in (("(", ")", "1"), ("abs(", ")", "1"), ("(select ", ")", "1"), ("[", "]", "1")):
        with pytest.raises(UsageError, match="48 levels"):
            select_of(f"select {opens * depth}{inner}{closes * depth}", TABLES.keys(), frozenset())
    with pytest.raises(UsageError, match="48 levels"):
        select_of("select * from " + "(" * depth + "metrics" + ")" * depth, TABLES.keys(), frozenset())
