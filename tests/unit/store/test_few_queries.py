"""What a small file costs is how many queries it asks: each takes 70 µs, whatever it holds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from forensics.case.last_steps import reached
from forensics.case.steps import parts
from forensics.io.budget import TEXT_CHARS
from forensics.model import Source
from forensics.pipeline import ingest_run
from forensics.store.sink import SourceSink

_LOG = "".join(
    f"[2026-01-02 03:04:{step:02d}] step: {step} | loss: {3 - step / 50:.3f} | lr: 3e-4\n" for step in range(20)
)
_TABLE = "step,loss,lr\n" + "".join(f"{step},{3 - step / 50:.3f},3e-4\n" for step in range(20))


def queries(work: Callable[[], object]) -> int:
    """Count the plans that the engine of columns runs."""
    asked: list[str] = []

    def see(_: object, event: str, called: object) -> None:
        if event == "c_call" and getattr(called, "__name__", "") == "collect" and "LazyFrame" in repr(called):
            asked.append(event)

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(before)
    return len(asked)


def more(tmp_path: Path, name: str, text: str, work: Callable[[Path], Callable[[], object]]) -> float:
    """Queries that each further file costs."""
    counts: list[int] = []
    for files in (4, 2, 4):  # the first one warms up what a process asks once
        place = tmp_path / f"{name}-{len(counts)}"
        place.mkdir()
        for number in range(files):
            (place / name.format(number)).write_text(text)
        counts.append(queries(work(place)))
    return (counts[2] - counts[1]) / 2


def reading(place: Path) -> Callable[[], object]:
    return lambda: ingest_run(place)


def steps_of_each(place: Path) -> Callable[[], object]:
    run = ingest_run(place)
    list(reached(run))
    return lambda: list(reached(run))


@pytest.mark.parametrize(("name", "text", "most"), [("a{}.log", _LOG, 3), ("metrics{}.csv", _TABLE, 0)])
def test_a_small_file_asks_few_queries(tmp_path: Path, name: str, text: str, most: int) -> None:
    assert more(tmp_path, name, text, reading) <= most


def test_the_steps_of_another_file_with_times_are_no_query(tmp_path: Path) -> None:
    assert more(tmp_path, "a{}.log", _LOG, steps_of_each) == 0


@pytest.mark.parametrize("rows", [1, 499, 500])
def test_texts_are_charged_in_bytes_however_few_they_are(rows: int) -> None:
    sink = SourceSink(Source("a", 1_000_000))
    sink.rows("metrics", pl.DataFrame({"name": ["é" * TEXT_CHARS, *[None] * (rows - 1)], "value": [1.0] * rows}))
    assert sink.budget.cells == 2 * rows + 2


@pytest.mark.parametrize(
    ("ranks", "found"),
    [
        ([], 0),
        ([1, 1], 1),
        ([None, None], 1),
        ([1, 2, 1], 2),
        ([None, 1], 2),
        ([1, None], 2),
        ([1, 2, 2], 2),
    ],
)
def test_rows_of_one_key_are_one_part(ranks: list[int | None], found: int) -> None:
    rows = pl.DataFrame(
        {"rank": pl.Series(ranks, dtype=pl.Int32), "source": pl.Series(["a"] * len(ranks), dtype=pl.String)}
    )
    got = parts(rows, ["rank", "source"])
    assert len(got) == found
    assert found != 1 or got[0] is rows
