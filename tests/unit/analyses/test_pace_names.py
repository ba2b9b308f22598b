from __future__ import annotations

import pytest

from forensics.analyses.pace.names import pace_of


@pytest.mark.parametrize(
    ("name", "raw_name", "form"),
    [
        ("step_time_s", "train_time", "time"),
        ("iter_time", "iter_time", "time"),
        ("data_time_s", "iter_time", None),
        ("my_iter_time", "iter_time", "time"),
        ("loss", None, None),
    ],
)
def test_a_printed_name_counts_where_the_canonical_one_means_nothing_else(
    name: str, raw_name: str | None, form: str | None
) -> None:
    found = pace_of(name, raw_name)
    assert (found.form if found is not None else None) == form
