"""The numbers of a column are those of its cells, however they are printed."""

from __future__ import annotations

import pytest

from forensics.dialects.learned.families import Column
from forensics.dialects.learned.masking import Slot


@pytest.mark.parametrize(
    ("texts", "unit"),
    [
        (["1", "2.5", "1e-3", "-inf"], ""),
        (["1,024", "12"], ""),
        (["0,25", "0,5"], ""),
        (["nan.0", "1"], ""),
        (["424", "1.5"], "k"),
        (["1:02:03", "59"], ""),
        (["3s", "4s"], ""),
    ],
)
def test_the_numbers_of_a_column_are_those_of_its_cells(texts: list[str], unit: str) -> None:
    cells = tuple(Slot("loss", text, unit, "", over=False) for text in texts)
    column = Column("loss", cells, (), 0)
    assert list(map(repr, column.values)) == [repr(cell.value) for cell in cells]
    assert column.is_clocked == any(cell.is_clocked for cell in cells)
