"""Event files against tensorboard's own reader: every point of every tag, across every buffer at least three times."""

from __future__ import annotations

import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto import event_pb2, summary_pb2

from forensics import pipeline
from forensics.formats.tfevents._routes import ALL, Routes
from forensics.formats.tfevents.reader import read_points
from forensics.io.limits import DEFAULT, Limits
from forensics.io.reading import opened_bytes
from forensics.io.records.tfrecord import frame
from forensics.model import FileCoverage
from forensics.store.sink import SourceSink
from forensics.values import replace

sys.path.insert(0, str(Path(__file__).parent))
from damage import hit
from event_logs import NAME, STRETCHES, Point, Stretch, log_of, points, spans

pytestmark = pytest.mark.usefixtures("only_owned_columns")
ROUTES = [
    ALL,
    Routes(stride=False),
    Routes(template=False),
    Routes(stride=False, template=False),
]
#: A buffer of rows, and the bytes of every window: a file of a few thousand records crosses each of them.
SIZES = st.builds(
    lambda rows, size: replace(DEFAULT, batch_rows=rows, block_bytes=size),
    st.sampled_from([64, 1000, 1 << 17]),
    st.sampled_from([64, 300, 2_000, 16_000, 8 << 20]),
)
HITS = st.tuples(st.sampled_from(["flip", "zero", "delete", "cut"]), st.integers(0, 1 << 30), st.integers(1, 700))


def read(data: bytes, limits: Limits, routes: Routes = ALL) -> tuple[list[Point], FileCoverage]:
    """Our points in the order in which they are handed over."""
    opened = opened_bytes(NAME, data)
    sink = SourceSink(opened.source, limits)
    read_points(opened, sink, limits, routes)
    rows = sink.frames().get("metrics")
    columns = ("seq", "byte", "raw_name", "step", "t_ns", "attempt", "value")
    found = [] if rows is None else [Point(*row[:-1], bits(row[-1])) for row in rows.select(columns).iter_rows()]
    return found, sink.coverage("tfevents")


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


def told(folder: Path, tag: str) -> list[tuple[int, bytes, float]]:
    """Step, value and time of each point that tensorboard reads."""
    found = EventAccumulator(
        str(folder), size_guidance={"scalars": 0, "tensors": 0}, purge_orphaned_data=False
    ).Reload()
    every = [(p.step, bits(p.value), p.wall_time) for p in found.Scalars(tag)] if tag in found.Tags()["scalars"] else []
    return sorted(every)


@given(STRETCHES, st.integers(0, 1 << 16), SIZES, st.sampled_from(ROUTES))
def test_every_point_of_every_record_is_kept(
    stretches: list[Stretch], seed: int, limits: Limits, routes: Routes
) -> None:
    data = log_of(stretches, seed)
    found, coverage = read(data, limits, routes)
    assert found == points(data)
    assert (coverage.read_bytes, coverage.skipped_bytes) == (len(data), 0)


@given(STRETCHES, st.integers(0, 1 << 16))
def test_the_second_reader_reads_what_tensorboard_reads(stretches: list[Stretch], seed: int) -> None:
    data = log_of([replace(s, form="plain", count=min(s.count, 20)) for s in stretches], seed)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / NAME).write_bytes(data)
        for tag in {point.tag for point in points(data)}:
            own = sorted((p.step, p.bits, p.t_ns) for p in points(data) if p.tag == tag if p.t_ns is not None)
            theirs = [(s, b, round(t * 1e9)) for s, b, t in told(Path(folder), tag) if 0 < t < 9.2e9]
            assert own == sorted(theirs)


def untouched(data: bytes, low: int, high: int) -> Iterator[int]:
    """Numbers of the records that lie wholly before or behind the bytes from `low` to `high`."""
    for number, (begin, end) in enumerate(spans(data)):
        if end <= low or begin >= high:
            yield number


@given(STRETCHES, st.integers(0, 1 << 16), SIZES, st.sampled_from(ROUTES), HITS)
def test_of_the_records_that_damage_spares_none_is_lost(
    stretches: list[Stretch], seed: int, limits: Limits, routes: Routes, damage: tuple[str, int, int]
) -> None:
    data = log_of(stretches, seed)
    kind, where, size = damage
    broken, low, high = hit(data, kind, where % len(data), size)
    spared = set(untouched(data, low, high))
    found, coverage = read(broken, limits, routes)
    whole = [(p.tag, p.step, p.t_ns, p.bits) for p in points(data)]
    sound = Counter((p.tag, p.step, p.t_ns, p.bits) for p in points(data) if p.seq in spared)
    kept = Counter((p.tag, p.step, p.t_ns, p.bits) for p in found)
    assert not sound - kept
    assert not kept - Counter(whole)
    assert coverage.read_bytes + coverage.skipped_bytes == len(broken)


@pytest.mark.parametrize("batch_rows", [7, 64, 1000])
def test_every_point_is_kept_when_the_buffer_is_filled_again(tmp_path: Path, batch_rows: int) -> None:
    written(tmp_path / NAME, 1200, ["loss", "lr", "grad_norm"])
    same_as_tensorboard(tmp_path, replace(DEFAULT, batch_rows=batch_rows), None)


def test_a_file_changes_between_all_routes_and_back_three_times() -> None:
    tags = ("loss", "a", "b/c")
    stretch = Stretch(tags, 0, 200, 1, "plain", shuffled=False, marked=False)
    forms = [("plain", False), ("plain", True), ("tensor", False), ("metadata", False), ("text", False)]
    turns = [
        replace(stretch, first=1000 * n, form=form, shuffled=shuffled) for n, (form, shuffled) in enumerate(forms * 3)
    ]
    data = log_of(turns, 5)
    for size in (300, 4_096, 16_384):
        found, _ = read(data, replace(DEFAULT, block_bytes=size, batch_rows=997))
        assert found == points(data)


@pytest.mark.usefixtures("true_size")
@pytest.mark.parametrize("stored", [False, True], ids=["in-memory", "stored"])
def test_every_point_at_true_size(tmp_path: Path, stored: bool) -> None:
    (tmp_path / "run").mkdir()
    written(tmp_path / "run" / NAME, 60_000, ["loss", "lr", "grad_norm", *(f"layers/{n}" for n in range(6))])
    assert same_as_tensorboard(tmp_path / "run", DEFAULT, tmp_path / "store" if stored else None) >= 500_000


def written(path: Path, steps: int, tags: list[str]) -> None:
    """`steps` steps of these tags; a value is a function of its step, NaN at one of them."""
    with path.open("wb") as file:
        file.write(frame(event_pb2.Event(wall_time=1.75e9, file_version="brain.Event:2").SerializeToString()))
        for step in range(steps):
            for at, tag in enumerate(tags):
                number = float("nan") if step == steps // 12 else step + at / 8
                summary = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, simple_value=number)])
                event = event_pb2.Event(wall_time=1.75e9 + step, step=step, summary=summary)
                file.write(frame(event.SerializeToString()))


def same_as_tensorboard(folder: Path, limits: Limits, store: Path | None) -> int:
    """Hold every tag to tensorboard's reader; give the number of points."""
    rows = pipeline.ingest_run(folder, limits=limits, store=store).collect("metrics")
    every = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    tags = every.Tags()["scalars"]
    for tag in tags:
        expected = every.Scalars(tag)
        own = rows.filter(pl.col("raw_name") == tag)
        np.testing.assert_array_equal(own["step"].to_numpy(), [p.step for p in expected])
        np.testing.assert_array_equal(own["value"].to_numpy(), [p.value for p in expected])
        np.testing.assert_array_equal(own["t_ns"].to_numpy(), [round(p.wall_time * 1e9) for p in expected])
    assert rows["raw_name"].unique().sort().to_list() == sorted(tags)
    return rows.height
