"""Ordinary questions have the answers that polars expressions give, in both engines."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.util import find_spec

import polars as pl
import pytest

from forensics.store.run import Run, run_of
from forensics.store.sql import ask

HAS_DUCKDB = find_spec("duckdb") is not None
METRICS = pl.DataFrame(
    {
        "source": ["a.log"] * 4 + ["b.log"] * 4,
        "name": ["loss", "loss", "lr", "lr"] * 2,
        "step": [1, 2, 1, 2, 3, 4, 3, 4],
        "rank": [0, 0, 0, 0, 1, 1, None, 1],
        "value": [2.5, math.nan, 0.1, None, 2.0, math.inf, 0.2, -1.0],
    }
)
EVENTS = pl.DataFrame(
    {
        "source": ["a.log", "a.log", "b.log"],
        "seq": [0, 1, 2],
        "step": [1, 2, 4],
        "level": ["INFO", "ERROR", "ERROR"],
        "text": ["xxstart", "it's over: \\d", "Größe 5%"],
    }
)
m, e = METRICS, EVENTS
step, name, value, rank = pl.col("step"), pl.col("name"), pl.col("value"), pl.col("rank")
Expected = Callable[[], pl.DataFrame]

QUESTIONS: list[tuple[str, Expected]] = [
    ("select step, value from metrics where name = 'loss'", lambda: m.filter(name == "loss").select("step", "value")),
    ("SELECT Step, METRICS.Value FROM Metrics WHERE Name = 'lr'",
     lambda: m.filter(name == "lr").select("step", "value")),
    ('select "step" as "the step" from "metrics"', lambda: m.select(step.alias("the step"))),
    ("select `step` from `metrics`", lambda: m.select("step")),
    ("select step AS Peak from metrics order by peak desc limit 2", lambda: m.select(Peak=step).top_k(2, by="Peak")),
    (
        "select name, count(*) as n, max(step) as top from metrics group by name",
        lambda: m.group_by("name").agg(n=pl.len().cast(pl.Int64), top=step.max()),
    ),
    (
        "select name from metrics group by name having sum(step) > 9",
        lambda: m.group_by("name").agg(step.sum()).filter(step > 9).select("name"),
    ),
    (
        "select m.step, e.level from metrics m join events as e on m.step = e.step and m.source = e.source",
        lambda: m.join(e, on=["step", "source"]).select("step", "level"),
    ),
    (
        "select step, level from metrics left join events using (source, step) where name = 'loss'",
        lambda: m.filter(name == "loss").join(e, on=["source", "step"], how="left").select("step", "level"),
    ),
    ("select count(*) as n from metrics cross join events", lambda: pl.DataFrame({"n": [24]})),
    ("select count(*) as n from metrics, events", lambda: pl.DataFrame({"n": [24]})),
    (
        "select * from (metrics m semi join events e on m.step = e.step) where rank = 1",
        lambda: m.join(e, on="step", how="semi").filter(rank == 1),
    ),
    (
        ("with Worst as (select name, max(step) as top from metrics group by name), more (a) as (select 1)"
        " select w.name, w.top + a as t from WORST w cross join more"),
        lambda: m.group_by("name").agg(t=step.max() + 1),
    ),
    ("select s from (select step as s from metrics where rank = 1) as sub", lambda: m.filter(rank == 1).select(s=step)),
    (
        "select step from metrics where step in (select step from events where level = 'ERROR')",
        lambda: m.filter(step.is_in([2, 4])).select("step"),
    ),
    ("select step from metrics where step not in (1, 2, 3)", lambda: m.filter(step > 3).select("step")),
    ("select (select max(step) from events) as top", lambda: pl.DataFrame({"top": [4]})),
    (
        "select step from metrics m where exists (select 1 from events e where e.step = m.step)",
        lambda: m.filter(step.is_in([1, 2, 4])).select("step"),
    ),
    ("select step from metrics union all select step from events",
     lambda: pl.concat([m.select("step"), e.select("step")])),
    ("(select step from metrics) union select step from events", lambda: m.select("step").unique()),
    ("select step from metrics except select step from events", lambda: pl.DataFrame({"step": [3]})),
    ("select step from metrics intersect select step from events", lambda: pl.DataFrame({"step": [1, 2, 4]})),
    (
        "select step, row_number() over (partition by name order by step desc) as r from metrics",
        lambda: m.select("step", r=step.rank("ordinal", descending=True).over("name").cast(pl.Int64)),
    ),
    (
        "select step, sum(step) over w as s from metrics where name = 'lr' window w as (order by step)",
        lambda: m.filter(name == "lr").select("step", s=step.cum_sum()),
    ),
    (
        ("select step, first_value(step) over (order by step rows between unbounded preceding and current row) as f"
        " from events"),
        lambda: e.select("step", f=pl.lit(1, pl.Int64)),
    ),
    (
        "select name from metrics qualify row_number() over (partition by name order by step) = 1",
        lambda: m.select("name").unique(),
    ),
    (
        "select count(*) filter (where step > 2) as late, count(distinct name) as names from metrics",
        lambda: pl.DataFrame({"late": [4], "names": [2]}),
    ),
    ("select extract(year from date '2024-02-03') as y", lambda: pl.DataFrame({"y": [2024]})),
    ("select trim(leading 'x' from text) as t from events",
     lambda: e.select(t=pl.col("text").str.strip_chars_start("x"))),
    ("select substring(text from 2 for 3) as t from events", lambda: e.select(t=pl.col("text").str.slice(1, 3))),
    ("select step from metrics where rank is distinct from 1", lambda: m.filter(rank.ne_missing(1)).select("step")),
    ("select step from metrics where rank is not null and not step between 2 and 3",
     lambda: m.filter(rank.is_not_null() & ~step.is_between(2, 3)).select("step")),
    ("select text from events where text like '%5 \\%' or text ilike 'XX%'",
     lambda: e.filter(step == 1).select("text")),
    ("select seq from events where text = 'it''s over: \\d'", lambda: pl.DataFrame({"seq": [1]})),
    ("select seq from events where text like 'Größe%' -- the third", lambda: pl.DataFrame({"seq": [2]})),
    ("/* which */ select /* /* nested */ */ count(*) as n from events;", lambda: pl.DataFrame({"n": [3]})),
    ("select case when step > 2 then 'late' else 'early' end as t, -step * 2 as d from events",
     lambda: e.select(t=pl.when(step > 2).then(pl.lit("late")).otherwise(pl.lit("early")), d=step * -2)),
    ("select case level when 'INFO' then 0 else 1 end as b from events",
     lambda: e.select(b=(pl.col("level") != "INFO").cast(pl.Int32))),
    ("select cast(step as double) / 2 as h, step::varchar || '!' as t from events",
     lambda: e.select(h=step / 2, t=step.cast(pl.String) + "!")),
    ("select coalesce(rank, -1) as r, nullif(step, 1) as s, abs(-step) as a from metrics",
     lambda: m.select(r=rank.fill_null(-1), s=step.replace(1, None), a=step)),
    ("select * exclude (text, attrs, line, byte, t_ns, rank, code) from events",
     lambda: e.select("source", "seq", "step", "level")),
    ("select e.* exclude (text, attrs, line, byte, t_ns, rank, code) from events e where seq = 0",
     lambda: e.filter(pl.col("seq") == 0).select("source", "seq", "step", "level")),
    ("select step from metrics group by grouping sets ((step), (), (step, name)) having step is null",
     lambda: pl.DataFrame({"step": [None]})),
    ("select distinct name from metrics", lambda: m.select("name").unique()),
    ("select a, b from (values (1, 'x'), (2, 'y')) as v (a, b)", lambda: pl.DataFrame({"a": [1, 2], "b": ["x", "y"]})),
    ("select name, level, count(*) as n from metrics m join events e on m.step = e.step group by name, level",
     lambda: m.join(e, on="step").group_by("name", "level").agg(n=pl.len().cast(pl.Int64))),
    ("select step from metrics order by step desc nulls last, name limit 2 offset 1",
     lambda: pl.DataFrame({"step": [4, 3]})),
    ("select value from metrics where name = 'loss' and step = 2", lambda: pl.DataFrame({"value": [math.nan]})),
]  # fmt: skip


@pytest.fixture(scope="module")
def run() -> Run:
    return run_of("made", {"metrics": METRICS, "events": EVENTS})


@pytest.mark.parametrize("engine", ["polars", *(["duckdb"] if HAS_DUCKDB else [])])
@pytest.mark.parametrize(("question", "expected"), QUESTIONS, ids=[q for q, _ in QUESTIONS])
def test_the_answer_is_that_of_polars(run: Run, question: str, expected: Expected, engine: str) -> None:
    answer, wanted = ask(run, question, engine), expected()
    if wanted.width == METRICS.width:  # a star gives every column of the table
        answer = answer.select(wanted.columns)
    assert answer.columns == wanted.columns
    assert sorted(map(repr, answer.rows())) == sorted(map(repr, wanted.rows()))
