"""Rows that a NaN search looks at are those of the table, in the order of their records, however many at a time."""

from __future__ import annotations

import math
import random

import polars as pl
import pytest

from forensics.case import nonfinite, series
from forensics.case.nonfinite import BAD_CLASSES, watched
from forensics.case.series import metric_rows
from forensics.case.steps import SERIES, by_record
from forensics.store.run import Run, run_of
from forensics.store.schema import TABLES

_WATCHED = {"loss": "loss", "grad_norm": "grad_norm", "eval_loss": "eval"}
_NEAR = pl.col("role") == "loss", ~pl.col("bad"), pl.col("at") > 3


def written(seed: int, records: int = 120) -> Run:
    """Two files of two ranks, whose records of one file are not in order; a null, a NaN or a number in each."""
    rng, rows = random.Random(seed), list[dict[str, object]]()
    for source in ("a.log", "b.log"):
        for seq in rng.sample(range(records), records):
            owner = {"source": source, "seq": seq, "line": seq + 1, "step": seq // 2 if seq % 9 else None}
            owner |= {"attempt": rng.choice([None, 0, 1]), "rank": rng.choice([None, 0, 1]), "t_ns": seq}
            for name in rng.sample([*_WATCHED, "lr"], 2):
                kind = rng.choice(["finite", "nan", "null"])
                value = {"finite": 0.5 + seq, "nan": math.nan, "null": None}[kind]
                rows.append({**owner, "name": name, "raw_name": f"raw {name}", "value": value, "value_class": kind})
    return run_of("some", {"metrics": pl.DataFrame(rows, infer_schema_length=None)})


def scanned(run: Run) -> pl.DataFrame:
    """The same from the whole table, held at once."""
    rows = metric_rows(run, pl.col("name").is_in([*_WATCHED])).filter(pl.col("value_class") != "null")
    role = pl.col("name").replace_strict(_WATCHED, return_dtype=pl.String)
    return by_record(rows.with_columns(role=role, bad=pl.col("value_class").is_in(BAD_CLASSES))).collect()


def shown(rows: pl.DataFrame) -> list[str]:
    """Rows as text: a NaN is none of its equals."""
    return [str(row) for row in rows.select(*TABLES["metrics"], "role", "at", "bad").rows()]


@pytest.mark.parametrize("piece", [1, 7, 10_000])
@pytest.mark.parametrize("seed", range(3))
def test_rows_are_those_of_the_table_however_many_are_asked_at_a_time(
    seed: int, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series, "PIECE_RECORDS", piece)
    monkeypatch.setattr(nonfinite, "PIECE_RECORDS", piece)
    run = written(seed)
    table, rows = scanned(run), watched(run)
    assert shown(rows.frame()) == shown(table)
    assert shown(rows.filter(*_NEAR).frame()) == shown(table.filter(*_NEAR))
    assert [str(rows.row(i)["at"]) for i in range(len(rows))] == [*map(str, table["at"])]
    own = table.filter(pl.col(name).eq_missing(pl.lit(table[name][5])) for name in SERIES)
    assert shown(rows.of(rows.row(5)).frame()) == shown(own)
    counts = table.group_by(*SERIES, maintain_order=True).len()
    assert rows.count(*SERIES).rows() == counts.rows()


def test_the_highest_are_all_rows_that_have_the_greatest_number_and_of_none_there_are_none() -> None:
    rows, table = watched(written(1)), scanned(written(1))
    assert shown(rows.highest("at").frame()) == shown(table.filter(pl.col("at") == table["at"].max()))
    nothing = rows.filter(pl.col("at") < 0)
    assert (len(nothing), len(nothing.highest("at")), nothing.count(*SERIES).height) == (0, 0, 0)


def test_a_row_is_made_when_it_is_asked_for_and_none_is_kept_before(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    frame = nonfinite.Watched.frame

    def noted(rows: nonfinite.Watched, *names: str) -> pl.DataFrame:
        made.extend(names)
        return frame(rows, *names)

    monkeypatch.setattr(nonfinite.Watched, "frame", noted)
    rows = watched(written(2))
    assert (made, rows.places.itemsize) == ([], 4)
    rows.filter(pl.col("bad"), pl.col("at") > 3)
    assert {*made} == {"bad", "at"}
