"""Rows never change after they were read: every reader hands polars memory that nobody writes to again."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from forensics import pipeline
from forensics.io.columns import as_column, owned

FIXTURES = Path(__file__).parents[2] / "fixtures"
FORMATS = sorted(p.name for p in FIXTURES.iterdir() if p.is_dir() and p.name != "make")


def test_an_array_of_its_own_is_given_as_it_is_and_can_no_longer_be_written_to() -> None:
    array = np.arange(5)
    assert owned(array) is array
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 9


def test_a_view_is_copied_so_that_its_buffer_may_be_filled_again() -> None:
    buffer = np.arange(5)
    column = pl.Series(owned(buffer[:3]))
    buffer[:] = 9
    assert column.to_list() == [0, 1, 2]


@pytest.mark.parametrize("count", [0, 3, 5_001])
@pytest.mark.parametrize("kind", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
def test_few_numbers_and_many_are_a_column_of_one_type(kind: str, count: int) -> None:
    array = np.arange(count).astype(kind)
    found, dtype = as_column(array, "x"), pl.Series(np.zeros(1, kind)[:0].copy()).dtype
    assert (found.name, found.dtype, found.to_list()) == ("x", dtype, array.tolist())


def test_what_is_not_finite_stays_so() -> None:
    assert as_column(np.array([np.nan, np.inf])).to_list() == pytest.approx([np.nan, np.inf], nan_ok=True)


@pytest.mark.usefixtures("only_owned_columns")
def test_the_guard_sees_a_column_made_of_a_buffer() -> None:
    with pytest.raises(AssertionError, match="open for writing"):
        pl.Series(np.arange(3))
    with pytest.raises(AssertionError, match="open for writing"):
        pl.DataFrame({"a": np.zeros(3)})


@pytest.mark.usefixtures("only_owned_columns")
@pytest.mark.parametrize("name", FORMATS)
def test_every_fixture_is_read_without_a_column_that_shares_memory(name: str) -> None:
    for place in sorted((FIXTURES / name).iterdir()):
        run = pipeline.ingest_run(place)
        failed = run.collect("issues").filter(pl.col("code") == "ingester-failed")
        assert failed["message"].to_list() == []
