"""Whether numbers rise, which decides that rows are taken as they are."""

from __future__ import annotations

import polars as pl
import pytest

from forensics.case.steps import are_sorted, ends, first_of_each, rises, where


@pytest.mark.parametrize("numbers", [[], [5], [1, 2, 9]])
def test_each_number_above_the_one_before_rises(numbers: list[int]) -> None:
    assert rises(pl.Series(numbers, dtype=pl.Int64))


@pytest.mark.parametrize("numbers", [[1, 1], [2, 1], [1, None], [None]])
def test_an_equal_a_smaller_and_a_missing_number_do_not_rise(numbers: list[int | None]) -> None:
    assert not rises(pl.Series(numbers, dtype=pl.Int64))


def test_small_unsigned_numbers_that_fall_do_not_wrap_around() -> None:
    assert not rises(pl.Series([200, 100], dtype=pl.UInt8))


def test_of_equal_steps_the_first_row_is_kept_and_rising_rows_are_the_same_object() -> None:
    rising = pl.DataFrame({"at": [1, 2], "v": [0, 1]})
    assert first_of_each(rising, "at") is rising
    repeated = pl.DataFrame({"at": [1, 1, 2], "v": [0, 1, 2]})
    assert first_of_each(repeated, "at")["v"].to_list() == [0, 2]


@pytest.mark.parametrize("numbers", [[], [1], [None, 2, 3], [0, 0], [1, 0, 2], [None, None]])
def test_rows_that_are_wanted_are_those_of_a_filter(numbers: list[int | None]) -> None:
    rows = pl.DataFrame({"n": pl.Series(numbers, dtype=pl.Int64)})
    assert where(rows, (rows["n"] > 0).fill_null(value=False).to_numpy())["n"].to_list() == [n for n in numbers if n]


@pytest.mark.parametrize(
    ("source", "at", "sorted_"),
    [
        (["a", "a", "b"], [1, 2, 1], True),
        (["a", "a", "b"], [1, 1, 1], True),
        (["a", "a", "b"], [2, 1, 3], False),
        (["b", "a"], [1, 2], False),
        (["a", None], [1, 2], False),
        ([], [], True),
    ],
)
def test_rows_are_sorted_where_no_column_falls_while_those_before_it_stay(
    source: list[str | None], at: list[int], *, sorted_: bool
) -> None:
    places = pl.DataFrame({"source": source, "at": at}, schema={"source": pl.String, "at": pl.Int64})
    assert are_sorted(places) is sorted_


def _kept(*rows: tuple[int | None, int, int | None]) -> list[int]:
    frame = pl.DataFrame(rows, schema={"rank": pl.Int64, "step": pl.Int64, "at": pl.Int64}, orient="row")
    return ends(frame.with_row_index("n"), "rank", "step", rising=("at",))["n"].to_list()


def test_of_many_records_of_one_step_the_first_and_the_last_are_kept() -> None:
    assert _kept((None, 1, 10), (None, 1, 20), (None, 1, 30), (None, 2, 40), (None, 2, 50)) == [0, 2, 3, 4]


@pytest.mark.parametrize(
    "rows",
    [
        [(0, 1, 10), (1, 1, 20), (0, 1, 30)],  # another rank between them
        [(0, 1, 30), (0, 1, 10), (0, 1, 20)],  # the places fall
        [(0, 1, 10), (0, 1, None), (0, 1, 20)],  # a place is missing
        [(0, 1, 10), (0, 2, 20), (0, 1, 30)],  # another step between them
        [],
    ],
)
def test_records_that_differ_in_rank_step_or_order_are_all_kept(rows: list[tuple[int, int, int | None]]) -> None:
    assert _kept(*rows) == [*range(len(rows))]
