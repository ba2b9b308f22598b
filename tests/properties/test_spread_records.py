"""A record over several lines has its own step, wherever a block or a slice of its log ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pprint import pformat

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from forensics.formats.text import log, slices
from forensics.io.blocks import Block
from forensics.io.limits import Limits
from forensics.io.reading import Opened, opened_bytes
from forensics.io.slices import Cutting
from forensics.store.sink import SourceSink

WINDOWS = slices.Windows(head_bytes=10_000, before_bytes=5_000)


def loss(step: int) -> float:
    return round(2.5 - step / 2000 + step % 7 / 100, 4)


def row(step: int) -> dict[str, object]:
    return {"acc": 0.5, "bce": loss(step), "epoch": step, "grads": {"enc": 0.25, "dec": step % 5}, "zlr": 0.1}


def printed(step: int) -> str:
    return pformat(row(step), width=24) + "\n"


def logged(step: int) -> str:
    text = json.dumps(row(step), indent=2)
    return f"2026-01-03 10:{step // 60 % 60:02d}:{step % 60:02d} INFO fit {text}\n"


def noisy(step: int) -> str:
    bar = "".join(f"\r {n}%|#  | {n}/50 [00:01<00:09, 3.1it/s]" for n in (10, 48))
    return bar + "\n" + printed(step) + ("validating {held out\n" if step % 40 == 0 else "")


#: How many records are read of each form.
FORMS = ((printed, 3_000), (logged, 500), (noisy, 500))


def rows_of(opened: Opened, read: Callable[[SourceSink], object]) -> pl.DataFrame:
    sink = SourceSink(opened.source, Limits(), budget=opened.budget)
    read(sink)
    rows = sink.frames()["metrics"]
    return rows.sort("seq", "raw_name", maintain_order=True)


def steps(rows: pl.DataFrame) -> list[tuple[int, float]]:
    return rows.filter(pl.col("raw_name") == "bce").select("step", "value").rows()


@pytest.fixture(scope="module", params=FORMS)
def opened(request: pytest.FixtureRequest) -> Opened:
    form, count = request.param
    return opened_bytes("train.log", "".join(map(form, range(count))).encode())


@pytest.fixture(scope="module")
def whole(opened: Opened) -> pl.DataFrame:
    return rows_of(opened, lambda sink: log.read(opened, sink))


def test_each_record_has_its_own_step(whole: pl.DataFrame) -> None:
    assert steps(whole) == [(step, loss(step)) for step in range(len(steps(whole)))]
    assert len(steps(whole)) >= 500


@pytest.mark.parametrize("size", [200, 997, 20_011])
def test_blocks_of_any_size_give_the_same_rows(opened: Opened, whole: pl.DataFrame, size: int) -> None:
    assert_frame_equal(rows_of(opened, lambda sink: log.read(opened, sink, piece_bytes=size)), whole)


@pytest.mark.parametrize("count", range(2, 8))
def test_slices_give_the_same_rows(opened: Opened, whole: pl.DataFrame, count: int) -> None:
    parts = slices.cut(opened, {}, Cutting(step_bytes=opened.size_bytes // count + 1, before_bytes=0, after_bytes=0))
    assert len(parts) == count
    states: list[str] = []
    read = [
        rows_of(opened, lambda sink, part=part: states.append(slices.read(opened, sink, Limits(), part, WINDOWS)))
        for part in parts
    ]
    join = slices.joined(states)
    assert join is not None
    put_right = [
        join.changed(at, "metrics", rows, 0) if join.changes(at, "metrics") else rows for at, rows in enumerate(read)
    ]
    assert_frame_equal(pl.concat(put_right), whole)


def test_bytes_that_are_lost_part_a_record() -> None:
    """No line of the rest is joined with what a gap parts it from."""
    record = printed(3).encode()
    text = "".join(map(printed, range(50))).encode()
    opened = opened_bytes("train.log", text)
    sink = SourceSink(opened.source, Limits(), budget=opened.budget)
    reader = log.log_of(opened, sink, Limits())
    half = record.index(b"\n") + 1
    reader.take([Block(record[:half], 0, 1), Block(text, 5_000, 20)], sink)
    reader.close(sink)
    found = sink.frames()["metrics"]
    assert steps(found) == [(step, loss(step)) for step in range(50)]
    assert found["byte"].min() == 5_000
