"""Heights above the own past."""

from __future__ import annotations

import math

import polars as pl

from forensics.stats.running import robust


def test_a_record_is_measured_against_the_median_of_those_before_it() -> None:
    rows = robust(pl.DataFrame({"value": [1.0, 1.1, 0.9, 1.0, 1.05, 0.95, 8.0]}))
    assert abs(rows["ratio"][-1] - 8.0) < 0.3
    assert rows["z"][-1] > 5


def test_records_without_enough_past_have_no_height() -> None:
    rows = robust(pl.DataFrame({"value": [1.0, 9.0, 1.0]}))
    assert rows["z"].null_count() == 3


def test_what_is_not_a_positive_number_is_left_out() -> None:
    assert robust(pl.DataFrame({"value": [1.0, 0.0, -1.0, math.nan, math.inf]})).height == 1
