"""A long text that many rows repeat is held once; nothing of the rows changes."""

from __future__ import annotations

import polars as pl
import pytest

from forensics.store.gather import shared

LONG = "rank " * 200


def frame(texts: list[str | None]) -> pl.DataFrame:
    return pl.DataFrame({"n": range(len(texts)), "text": texts}, schema={"n": pl.Int64, "text": pl.String})


def held_bytes(rows: pl.DataFrame) -> int:
    """What the rows take without the text that they share, as a file of memory holds shared buffers once."""
    buffers = {part.address: part.size for part in rows["text"].to_arrow().buffers() if part is not None}
    return sum(buffers.values())


@pytest.mark.parametrize(
    "texts",
    [[LONG + str(n % 2) for n in range(40)], [LONG if n % 3 else None for n in range(40)], [LONG] * 4, []],
)
def test_the_rows_stay_as_they_are(texts: list[str | None]) -> None:
    rows = frame(texts)
    assert shared(rows).equals(rows, null_equal=True)
    assert shared(rows).schema == rows.schema


def test_a_repeated_long_text_is_held_once_and_another_as_it_was() -> None:
    pytest.importorskip("pyarrow")
    repeated, own = frame([LONG] * 400), frame([LONG + str(n) for n in range(400)])
    assert held_bytes(shared(repeated)) < held_bytes(repeated) / 20
    assert held_bytes(shared(own)) == held_bytes(own)


def test_short_texts_and_texts_of_few_repeats_are_not_looked_at_again() -> None:
    for rows in (frame(["step"] * 400), frame([LONG, LONG, LONG + "1"])):
        assert shared(rows) is rows
