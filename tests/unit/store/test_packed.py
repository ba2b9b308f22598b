"""What is packed takes fewer bytes and says the same, whatever it was made of."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal, assert_series_equal

from forensics.store import packed as packing
from forensics.store.packed import NAMED, Packed, pack, packed_from, stacked
from forensics.store.schema import TABLES, conform

_TEXTS = st.sampled_from(["loss", "lr", "", "ü/ñ", "train/loss"]) | st.none()
_INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200) | st.none()
_FLOATS = st.floats(allow_nan=True, allow_infinity=True) | st.none()
_ROWS = st.lists(st.tuples(_TEXTS, _TEXTS, _INTEGERS, _INTEGERS, _FLOATS), max_size=12)


def table(rows: list[tuple[str | None, str | None, int | None, int | None, float | None]]) -> pl.DataFrame:
    types = {"source": pl.String, "raw_name": pl.String, "seq": pl.Int64, "step": pl.Int64, "value": pl.Float64}
    return conform("metrics", pl.DataFrame(rows, schema=types, orient="row"))


def joined(*frames: pl.DataFrame) -> Packed:
    whole = stacked("metrics", [pack("metrics", frame) for frame in frames])
    assert isinstance(whole, Packed)
    return whole


@given(st.lists(_ROWS, min_size=1, max_size=5), st.lists(st.booleans(), min_size=5, max_size=5))
def test_rows_come_back_as_they_were(parts: list[list[object]], packs: list[bool]) -> None:
    frames = [table(part) for part in parts]  # type: ignore[arg-type] # drawn above
    whole = pl.concat(frames)
    mixed = stacked("metrics", [pack("metrics", f) if p else f for f, p in zip(frames, packs, strict=False)])
    back = mixed.lazy().collect()
    assert back.schema == dict(TABLES["metrics"])
    assert_frame_equal(back, whole, check_exact=True)
    assert_frame_equal(packed_from(whole.lazy()).lazy().collect(), whole, check_exact=True)


@given(st.lists(_ROWS, min_size=1, max_size=3), st.data())
def test_some_rows_of_some_columns_are_those_of_the_table(parts: list[list[object]], data: st.DataObject) -> None:
    whole = pl.concat([table(part) for part in parts])  # type: ignore[arg-type] # drawn above
    packed = joined(*(table(part) for part in parts))  # type: ignore[arg-type] # drawn above
    places = st.lists(st.integers(0, whole.height - 1)) if whole.height else st.just(list[int]())
    rows = np.array(data.draw(places), np.uint32)
    wanted = whole[pl.Series(rows)]
    assert_frame_equal(packed.lazy(rows).collect(), wanted, check_exact=True)
    name = data.draw(st.sampled_from(whole.columns))
    assert_frame_equal(packed.lazy().select(name).collect(), whole.select(name), check_exact=True)
    assert_frame_equal(
        packed.lazy(rows, coded=True).select(pl.col(name).cast(whole[name].dtype)).collect(),
        wanted.select(name),
        check_exact=True,
    )
    assert_series_equal(packed.gather(name, rows), wanted[name], check_exact=True)
    cells = [packed.value(name, int(row)) for row in rows]
    assert_series_equal(pl.Series(name, cells, dtype=wanted[name].dtype), wanted[name], check_exact=True)


@settings(max_examples=30)
@given(st.lists(_ROWS, min_size=1, max_size=4), st.integers(1, 7), st.booleans(), st.booleans(), st.data())
def test_rows_that_are_held_by_lines_come_back_as_they_were(
    parts: list[list[object]], piece: int, regular: bool, printed: bool, data: st.DataObject
) -> None:
    whole = pl.concat([table(part) for part in parts])  # type: ignore[arg-type] # drawn above
    if regular:
        rows = pl.int_range(pl.len())
        whole = whole.with_columns(seq=rows // 2, line=rows // 2 + 1, byte=rows // 2 * 80, step=rows // 4)
        whole = whole.with_columns(value=pl.col("value").cast(pl.Float32).cast(pl.Float64))
    if printed:
        few = st.sampled_from([-0.0, 0.1, 8.9764, 3e-10, 214748364.7, 2147483648.5, 1e300, math.nan, math.inf])
        whole = whole.with_columns(pl.Series("value", [data.draw(few) for _ in range(whole.height)], pl.Float64))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "_EVEN_ROWS", 0)
        patch.setattr(packing, "_PIECE_ROWS", piece)
        packed = packed_from(whole.lazy())
    assert_frame_equal(packed.lazy().collect(), whole, check_exact=True)
    places = st.lists(st.integers(0, whole.height - 1)) if whole.height else st.just(list[int]())
    rows = np.array(data.draw(places), np.uint32)
    wanted = whole[pl.Series(rows)]
    assert_frame_equal(packed.lazy(rows).collect(), wanted, check_exact=True)
    for name in whole.columns:
        assert_series_equal(packed.gather(name, rows), wanted[name], check_exact=True)
        cells = [packed.value(name, int(row)) for row in rows]
        assert_series_equal(pl.Series(name, cells, dtype=wanted[name].dtype), wanted[name], check_exact=True)
    numbers = [name for name in ("seq", "step", "value") if not wanted[name].null_count()]
    for name in numbers:
        assert_series_equal(pl.Series(name, packed.numbers(name, rows)).cast(wanted[name].dtype), wanted[name])
    assert len(packed.shared("step")) == len(packed.shared("epoch")) == packed.n_records


def test_a_long_regular_log_takes_five_bytes_a_row() -> None:
    steps = pl.Series(range(2_000))
    alone = pl.DataFrame({"step": steps, "seq": steps, "line": steps, "byte": steps * 80, "t_ns": steps * 10**9})
    beside = pl.DataFrame({"name": ["lr", "loss", "mfu", "grad_norm", "mem_gib"]}).with_columns(raw_name="name")
    rows = alone.join(beside, how="cross", maintain_order="left_right").with_columns(value=0.5, source=pl.lit("a.log"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "_EVEN_ROWS", rows.height)
        assert packed_from(conform("metrics", rows).lazy()).estimated_size() <= 5 * rows.height + 1_000
        patch.setattr(packing, "_EVEN_ROWS", rows.height + 1)
        assert packed_from(conform("metrics", rows).lazy()).estimated_size() > 15 * rows.height


def test_printed_numbers_take_five_bytes_unless_many_need_all_their_digits() -> None:
    printed = pl.Series("value", [round(2 + n / 1_000, 4) for n in range(4_000)])
    scaled = printed.round(1) * (10**9 / 2**30)  # few numbers, with all their digits
    for values, size_bytes in ((printed, 5), (scaled, 5), (pl.concat([printed, printed.sqrt()]), 8)):
        rows = conform("metrics", pl.DataFrame({"step": range(len(values)), "value": values}))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(packing, "_EVEN_ROWS", 0)
            packed = packed_from(rows.lazy())
        assert packed.own.drop("#code").estimated_size() == size_bytes * len(values)
        assert packed.numbers("value", np.arange(len(values), dtype=np.uint32)).tolist() == values.to_list()


def test_the_class_of_a_value_takes_a_byte() -> None:
    values = [2.5, math.nan, math.inf, None] * 500
    packed = pack("metrics", conform("metrics", pl.DataFrame({"step": range(2_000), "value": values})))
    assert isinstance(packed, Packed)
    assert packed.own["value_class"].estimated_size() == 2_000
    assert packed.short("value_class", np.array([0, 1, 2, 3])).to_list() == ["finite", "nan", "+inf", "null"]


def test_a_usual_row_takes_twenty_bytes_and_one_without_a_record_of_its_own_forty() -> None:
    steps = pl.Series(range(50_000))
    alone = pl.DataFrame({"step": steps, "seq": steps, "line": steps, "byte": steps * 80, "value": [0.5] * 50_000})
    alone = alone.with_columns(source=pl.lit("a.log"), name=pl.lit("loss"), raw_name=pl.lit("loss"))
    beside = pl.DataFrame({"name": ["lr", "loss", "mfu", "grad_norm", "mem_gib"]}).with_columns(raw_name="name")
    together = alone.drop("name", "raw_name").join(beside, how="cross", maintain_order="left_right")
    for frame, size_bytes in ((alone, 26), (together, 17)):
        packed = pack("metrics", conform("metrics", frame))
        assert packed.estimated_size() <= size_bytes * frame.height
        assert packed.lazy().select("step").collect().equals(frame.select("step"))


def test_a_record_that_two_frames_share_is_one() -> None:
    packed = joined(*(table([("a.log", name, seq, seq, 0.5)]) for name, seq in (("x", 1), ("y", 1), ("x", 2))))
    assert packed.n_records == 2
    assert packed.record_of().to_list() == [0, 0, 1]


@pytest.mark.parametrize("raw", ["ababab", "ababa", "aaaa", "abcabcab", "abacabac", "ababac", "abba", "a", ""])
@pytest.mark.parametrize("changes", [False, True])
def test_names_come_back_whether_they_follow_each_other_again_or_almost_do(raw: str, *, changes: bool) -> None:
    names = [f"n_{one}" for one in raw]
    names[-1:] = ["other"] if changes and names else names[-1:]  # the printed names alone repeat
    named = pl.DataFrame({"name": names, "raw_name": [*raw]}, schema=dict.fromkeys(NAMED, pl.String))
    frame = conform("metrics", named.with_columns(value=pl.lit(0.5)))
    packed = pack("metrics", frame)
    assert isinstance(packed, Packed)
    assert packed.lazy().collect().equals(frame)
    assert packed.names.equals(frame.select(NAMED).unique(maintain_order=True))


def test_rows_of_other_sources_or_steps_are_records_of_their_own() -> None:
    packed = joined(table([("a.log", "x", 1, 1, 0.5), ("b.log", "x", 1, 1, 0.5), ("b.log", "x", 1, 2, 0.5)]))
    assert packed.n_records == 3


def test_what_is_joined_does_not_stand_there_twice() -> None:
    parts = [pack("metrics", table([("a.log", "loss", n, n, n / 2), ("a.log", "lr", n, n, 0.5)])) for n in range(3)]
    assert stacked("metrics", parts).height == 6
    assert [part.own.width for part in parts if isinstance(part, Packed)] == [0, 0, 0]


def test_a_table_of_documents_is_left_as_it_is() -> None:
    frame = conform("events", pl.DataFrame({"source": ["a.log"], "text": ["Traceback"]}))
    assert pack("events", frame) is frame


@pytest.mark.parametrize("height", [0, 1, 7, 12])
def test_rows_of_several_files_are_packed_in_their_order_piece_by_piece(
    height: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "_PIECE_ROWS", 3)
    whole = table([(f"{n // 5}.log", "loss", n, n // 2, float(n)) for n in range(height)])
    for number, first in enumerate(range(0, max(height, 1), 4)):
        whole.slice(first, 4).write_parquet(tmp_path / f"metrics-{number:04d}.parquet")
    found = packed_from(pl.scan_parquet(tmp_path / "metrics-*.parquet"))
    assert_frame_equal(found.lazy().collect(), whole, check_exact=True)
