"""What is packed takes fewer bytes and says the same, whatever it was made of."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from forensics.store.packed import pack, packed_from, stacked, unpacked
from forensics.store.schema import TABLES, conform

_TEXTS = st.sampled_from(["loss", "lr", "", "ü/ñ", "train/loss"]) | st.none()
_INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200) | st.none()
_FLOATS = st.floats(allow_nan=True, allow_infinity=True) | st.none()
_ROWS = st.lists(st.tuples(_TEXTS, _TEXTS, _INTEGERS, _INTEGERS, _FLOATS), max_size=12)


def table(rows: list[tuple[str | None, str | None, int | None, int | None, float | None]]) -> pl.DataFrame:
    types = {"source": pl.String, "raw_name": pl.String, "seq": pl.Int64, "step": pl.Int64, "value": pl.Float64}
    return conform("metrics", pl.DataFrame(rows, schema=types, orient="row"))


@given(st.lists(_ROWS, min_size=1, max_size=5), st.lists(st.booleans(), min_size=5, max_size=5))
def test_rows_come_back_as_they_were(parts: list[list[object]], packs: list[bool]) -> None:
    frames = [table(part) for part in parts]  # type: ignore[arg-type] # drawn above
    whole = pl.concat(frames)
    joined = stacked("metrics", [pack("metrics", f) if p else f for f, p in zip(frames, packs, strict=False)])
    back = unpacked("metrics", joined).collect()
    assert back.schema == dict(TABLES["metrics"])
    assert_frame_equal(back, whole, check_exact=True)
    assert_frame_equal(unpacked("metrics", packed_from("metrics", whole.lazy())).collect(), whole, check_exact=True)


def test_a_usual_row_takes_forty_bytes() -> None:
    steps = range(50_000)
    values = {"step": steps, "seq": steps, "line": steps, "byte": steps, "value": [0.5] * 50_000}
    frame = conform("metrics", pl.DataFrame({**values, "source": "a.log", "name": "loss", "raw_name": "loss"}))
    assert pack("metrics", frame).estimated_size() <= 41 * frame.height


def test_what_is_joined_does_not_stand_there_twice() -> None:
    parts = [pack("metrics", table([("a.log", "loss", n, n, 0.5)])) for n in range(3)]
    assert stacked("metrics", parts).height == 3
    assert [part.width for part in parts] == [0, 0, 0]


def test_a_table_of_documents_is_left_as_it_is() -> None:
    frame = conform("events", pl.DataFrame({"source": ["a.log"], "text": ["Traceback"]}))
    assert pack("events", frame) is frame
