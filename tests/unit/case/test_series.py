"""The index of series gives the rows that a scan of the whole table would give, in the same order."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from forensics.case import series
from forensics.case.series import (
    chosen,
    holding,
    index_of,
    keys_of,
    metric_records,
    metric_rows,
    of_each_source,
    placed_rows,
    record_pieces,
)
from forensics.case.steps import by_record, ends, first_of_each, ordered
from forensics.store import packed
from forensics.store.packed import PLACE
from forensics.store.run import Run, run_of

_KEY = ["source", "attempt", "rank", "raw_name", "name"]
_CHOICES = {
    "one name": pl.col("name") == "loss",
    "several": pl.col("name").is_in(["loss", "lr"]),
    "one file of one rank": (pl.col("source") == "b.log") & (pl.col("rank") == 1),
    "no rank": pl.col("rank").is_null(),
    "none": pl.col("name") == "absent",
    "all": pl.lit(value=True),
}


def written(seed: int, rows: int = 400) -> pl.DataFrame:
    """Rows of some files, ranks and attempts, names mixed; a record of two metrics has one place."""
    rng = random.Random(seed)
    found: list[dict[str, object]] = []
    for source in ("a.log", "b.log", "c.csv"):
        for seq in range(rows // 6):
            owner = {
                "source": source,
                "seq": seq,
                "step": seq // 2 if seq % 9 else None,
                "line": seq + 1,
                "t_ns": rng.choice([None, seq]),
            }
            owner |= {"attempt": rng.choice([None, 0, 1]), "rank": rng.choice([None, 0, 1])}
            for name in rng.sample(["loss", "lr", "eval_loss", "train/x"], 2):
                value = rng.choice([0.5, math.nan, None])
                found.append({**owner, "name": name, "raw_name": f"raw {name}", "value": value})
    return pl.DataFrame(found, infer_schema_length=None)


def run(seed: int = 1) -> Run:
    return run_of("run", {"metrics": written(seed)})


@pytest.mark.parametrize("asked", _CHOICES)
@pytest.mark.parametrize("piece", [7, 10_000])
def test_rows_of_some_series_are_those_of_a_scan(monkeypatch: pytest.MonkeyPatch, asked: str, piece: int) -> None:
    monkeypatch.setattr(series, "_PIECE_ROWS", piece)
    one, where = run(), _CHOICES[asked]
    assert_frame_equal(metric_rows(one, where).collect(), one.scan("metrics").filter(where).collect(), check_exact=True)


@pytest.mark.parametrize("asked", _CHOICES)
def test_rows_without_a_finite_number_or_a_step_are_left_out_where_asked(asked: str) -> None:
    one, where = run(), _CHOICES[asked]
    stepped = pl.coalesce("gstep", "step").is_not_null()
    wanted = one.scan("metrics").filter(where & (pl.col("value_class") == "finite") & stepped).collect()
    clean = run_of("run", {"metrics": wanted})
    for run_ in (one, clean):
        index = index_of(run_)
        found = index.finite_at_steps(np.flatnonzero(chosen(index, where)).tolist())
        in_order = wanted.sort("seq", maintain_order=True).rows(named=True)
        assert [index.table.row(place) for place in found.tolist()] == in_order


@pytest.mark.parametrize("asked", _CHOICES)
def test_a_row_is_found_by_its_place(asked: str) -> None:
    one, where = run(), _CHOICES[asked]
    wanted, found = one.scan("metrics").filter(where).collect(), placed_rows(one, where).collect()
    assert_frame_equal(found.drop(PLACE).cast(wanted.schema), wanted, check_exact=True)
    rows = [index_of(one).table.row(place) for place in found[PLACE]]
    assert [*map(str, rows)] == [*map(str, wanted.rows(named=True))]  # a NaN is none of its equals


@pytest.mark.parametrize("piece", [7, 10_000])
def test_the_reach_of_some_series_is_their_first_and_last_step(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(series, "PIECE_RECORDS", piece)
    index = index_of(run())
    for i, key in enumerate(index.keys.iter_rows(named=True)):
        own = pl.all_horizontal(pl.col(name).eq_missing(pl.lit(key[name])) for name in _KEY)
        steps = run().collect("metrics").filter(own)["step"]
        assert index.reach([i]) == (steps.min(), steps.max())
    assert index.reach([]) == (None, None)


def test_series_that_stand_elsewhere_are_left_out_by_their_whole_key() -> None:
    one = run()
    gone = pl.DataFrame({"source": ["a.log"], "attempt": [None], "rank": [1], "raw_name": ["raw loss"]}).cast(
        {"attempt": pl.Int32, "rank": pl.Int32}
    )
    where = pl.col("name") == "loss"
    left = one.scan("metrics").filter(where).join(gone.lazy(), on=gone.columns, how="anti", nulls_equal=True)
    expected = left.collect().sort("source", "seq")
    assert_frame_equal(metric_rows(one, where, without=gone).collect().sort("source", "seq"), expected)
    assert expected.height < metric_rows(one, where).collect().height


def test_keys_count_what_each_series_holds() -> None:
    one = run()

    def of_class(name: str) -> pl.Expr:
        return (pl.col("value_class") == name).sum()

    stepped = pl.col("step").is_not_null() & (pl.col("value_class") != "null")
    numbered = stepped & pl.col("t_ns").is_not_null()
    counted = (
        one.collect("metrics")
        .group_by(_KEY)
        .agg(
            n=pl.len(),
            n_finite=of_class("finite"),
            n_null=of_class("null"),
            n_stepped=stepped.sum(),
            n_timed=numbered.sum(),
        )
    )
    assert_frame_equal(keys_of(one), counted, check_row_order=False, check_dtypes=False)


def test_a_record_of_several_metrics_stands_once() -> None:
    one = run()
    place = ["source", "attempt", "rank", "seq", "line", "byte", "step", "gstep", "t_ns"]
    found = metric_records(one).collect()
    assert_frame_equal(
        found.select(place).unique(), one.collect("metrics").select(place).unique(), check_row_order=False
    )
    assert found.height < one.collect("metrics").height
    trained = one.collect("metrics").filter(~pl.col("name").str.starts_with("eval"))
    assert_frame_equal(
        found.filter(~pl.col("evaluates")).select("source", "step").unique(),
        trained.select("source", "step").unique(),
        check_row_order=False,
    )


@pytest.mark.parametrize("seed", range(4))
def test_records_without_some_series_are_those_of_a_table_that_never_held_them(seed: int) -> None:
    one = run(seed)
    key = pl.col("source").eq("a.log") & pl.col("rank").eq(1) & pl.col("raw_name").eq("raw loss")
    gone = one.collect("metrics").filter(key).select("source", "attempt", "rank", "raw_name").unique()
    stays = one.collect("metrics").join(gone, on=gone.columns, how="anti", nulls_equal=True, maintain_order="left")
    assert gone.height
    assert stays.height < one.collect("metrics").height
    assert_frame_equal(
        metric_records(one, without=gone).collect(), metric_records(run_of("stays", {"metrics": stays})).collect()
    )


@pytest.mark.parametrize("piece", [1, 7, 10_000])
def test_records_in_pieces_are_those_of_one_question(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    whole = of_each_source(run(), metric_records(run()))
    monkeypatch.setattr(series, "PIECE_RECORDS", piece)
    pieces = of_each_source(run(), *record_pieces(run()))
    assert [*pieces] == [*whole]
    for source, rows in whole.items():
        assert_frame_equal(pieces[source], rows, check_dtypes=False)
    left = metric_records(run(), without=keys_of(run()).filter(pl.col("name") == "lr"))
    some = pl.concat(rows.collect() for rows in record_pieces(run(), without=keys_of(run()).filter(name="lr")))
    assert_frame_equal(some, left.collect())
    assert [rows.collect().height for rows in record_pieces(run_of("r", {}))] == [0]


def of_a_tracker(**columns: object) -> Run:
    """Records of a number each, six of a step, as an event file has them: places and times rise."""
    n = 60
    rows = {"source": "events", "rank": 0, "seq": range(n), "byte": range(n), "t_ns": range(n), "value": 1.0}
    steps = {"step": [i // 6 for i in range(n)], "name": ["loss", "eval_loss", "lr", "lr", "lr", "x"] * (n // 6)}
    return run_of("run", {"metrics": pl.DataFrame({**rows, **steps, **columns})})


@pytest.mark.parametrize("piece", [50, 10_000])
@pytest.mark.parametrize("times", [[i // 9 for i in range(60)], [59 - i for i in range(60)], None])
def test_the_ends_of_each_step_are_the_same_whether_inner_records_were_given(
    monkeypatch: pytest.MonkeyPatch, piece: int, times: list[int] | None
) -> None:
    monkeypatch.setattr(series, "PIECE_RECORDS", piece)
    for one in (run(), of_a_tracker(t_ns=times), of_a_tracker(t_ns=times, rank=[i % 7 // 5 for i in range(60)])):
        stepped = pl.col("step").is_not_null()
        for where, rising in ((pl.col("trains"), ("seq", "t_ns")), (~pl.col("evaluates"), ("seq",)), (stepped, ())):
            every, some = (
                {
                    source: ends(rows, "step", "rank", rising=rising).rows()
                    for source, rows in of_each_source(
                        one,
                        *(rows.filter(where) for rows in record_pieces(one, inner=inner)),
                        same=("step", "rank"),
                        rising=rising,
                    ).items()
                }
                for inner in (True, False)
            )
            assert some == every


def test_records_of_one_step_are_left_out_where_places_and_times_rise_and_no_line_holds_each() -> None:
    def held(one: Run) -> int:
        return sum(rows.collect().height for rows in record_pieces(one, inner=False))

    assert held(of_a_tracker()) == 10 * 4  # loss, evaluation, first and last of the others
    assert held(of_a_tracker(t_ns=[59 - i for i in range(60)])) == held(of_a_tracker(line=range(60))) == 60


def test_a_run_of_many_rows_on_disk_has_the_same_series(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kept = run_of("r", {"metrics": written(4)}).scan("metrics").collect()
    kept.write_parquet(tmp_path / "rows.parquet")
    plain = Run("r", {"metrics": pl.scan_parquet(tmp_path / "rows.parquet")})
    monkeypatch.setattr(packed, "_EVEN_ROWS", 1)
    monkeypatch.setattr(packed, "_PIECE_ROWS", 50)
    held = Run("r", {"metrics": plain.scan("metrics")})
    assert index_of(held).table.evens
    assert_frame_equal(keys_of(held), keys_of(run_of("r", {"metrics": kept})))
    for where in _CHOICES.values():
        assert_frame_equal(metric_rows(held, where).collect(), kept.lazy().filter(where).collect())
    assert_frame_equal(metric_records(held).collect(), metric_records(run_of("r", {"metrics": kept})).collect())


def test_an_epoch_that_changes_within_a_place_is_another_record() -> None:
    rows = pl.DataFrame({"source": "a", "seq": 0, "name": ["loss", "lr", "lr"], "epoch": [1.0, 1.0, 2.0], "value": 1.0})
    assert metric_records(run_of("run", {"metrics": rows})).collect()["epoch"].to_list() == [1.0, 2.0]


def test_a_run_without_metrics_has_no_series() -> None:
    nothing = Run("empty")
    assert keys_of(nothing).is_empty()
    assert metric_rows(nothing, pl.col("name") == "loss").collect().is_empty()
    assert metric_records(nothing).collect().is_empty()


def test_a_table_on_disk_gives_the_same_rows(tmp_path: Path) -> None:
    held = run()
    held.collect("metrics").write_parquet(tmp_path / "metrics.parquet")
    on_disk = Run("run", {"metrics": pl.scan_parquet(tmp_path / "metrics.parquet")})
    where = _CHOICES["several"]
    assert_frame_equal(metric_rows(on_disk, where).collect(), metric_rows(held, where).collect())


@pytest.mark.parametrize("shuffled", [False, True])
def test_rows_are_sorted_whether_or_not_they_were(shuffled: bool) -> None:
    rows = run().collect("metrics")
    given = rows.sample(fraction=1, shuffle=True, seed=3) if shuffled else rows
    filled = given.with_columns(pl.coalesce("step", "gstep").alias("at"), pl.col("attempt").fill_null(0))
    keys = ["source", "attempt", "seq"]
    assert_frame_equal(ordered(given.lazy()).collect(), filled.sort(keys, maintain_order=True))
    assert_frame_equal(by_record(given.lazy()).collect(), filled.sort("seq", maintain_order=True))
    firsts = filled.unique("at", keep="first", maintain_order=True)
    assert_frame_equal(first_of_each(filled, "at"), firsts)


def test_series_are_chosen_by_the_words_of_their_names_and_one_without_a_name_is_not() -> None:
    names = ["mfu", "train/mfu", "loss", None]
    frame = pl.DataFrame({"source": "a", "seq": range(4), "step": 1, "name": names, "raw_name": names, "value": 0.5})
    run = run_of("a", {"metrics": frame.with_columns(value_class=pl.lit("finite"))})
    assert metric_rows(run, holding(run, "utilisation")).collect()["name"].to_list() == ["mfu", "train/mfu"]
    assert metric_rows(run, ~holding(run, "utilisation", "raw_name")).collect()["name"].to_list() == ["loss"]
    assert metric_rows(run, holding(run, "fp8")).collect().is_empty()
