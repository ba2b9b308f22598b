from __future__ import annotations

import pytest

from forensics.analyses.memory.oom_messages import Sizes
from forensics.knowledge.allocations import Clause, rows
from forensics.values import field_names

EVERY = pytest.mark.parametrize("row", rows(), ids=lambda row: row.row)


@EVERY
def test_a_clause_fits_what_it_is_like_and_gives_a_number_and_a_unit(row: Clause) -> None:
    found = row.compiled.search(row.like)
    assert found is not None
    assert found[1][0].isdigit()
    assert found[2]


@EVERY
def test_a_number_is_one_that_a_message_has(row: Clause) -> None:
    assert row.number in {*field_names(Sizes)} | {"own", "reserved", "cached", "outside"}
