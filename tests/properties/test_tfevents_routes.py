"""The quick routes through an event file give exactly what reading each record field by field gives, damaged or not."""

from __future__ import annotations

import math
import random
import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2

from forensics.formats.rows.attempts import Attempts
from forensics.formats.tfevents._layout import learn
from forensics.formats.tfevents._routes import ALL, Routes
from forensics.formats.tfevents.reader import read_points
from forensics.io.limits import DEFAULT
from forensics.io.reading import opened_bytes
from forensics.io.records.tfrecord import frame
from forensics.store.sink import SourceSink

FIELD_BY_FIELD = Routes(stride=False, template=False)
QUICK = [ALL, Routes(stride=False), Routes(template=False)]
ODD_NUMBERS = (math.nan, math.inf, -math.inf, -0.0, 0.0, 1e-45, 3.4e38)
KINDS = ("plain", "tensor", "content", "double", "several", "metadata", "histogram")


@dataclass(frozen=True)
class Segment:
    """Steps that log the same tags: `shuffled` in a new order each, `kind` says how, `first` is the first step."""

    tags: tuple[str, ...]
    first: int
    count: int
    stride: int
    kind: str
    shuffled: bool


SEGMENTS = st.builds(
    Segment,
    st.lists(st.sampled_from(["a", "b", "loss", "train/loss", "lr", "x" * 130]), min_size=1, max_size=5).map(tuple),
    st.sampled_from([0, 1, 100, 120, 16_300, (1 << 21) - 30, (1 << 42) - 20, (1 << 56) - 40, (1 << 62), -20]),
    st.sampled_from([1, 3, 40, 150, 300]),
    st.sampled_from([0, 1, 1, 1, 7, -1]),
    st.sampled_from(["plain", "plain", "plain", *KINDS]),
    st.sampled_from([False, False, False, True]),
)


def number(rng: random.Random) -> float:
    return rng.choice(ODD_NUMBERS) if rng.random() < 0.05 else rng.gauss(0, 10)


def values_of(kind: str, tag: str, rng: random.Random) -> list[summary_pb2.Summary.Value]:
    value = summary_pb2.Summary.Value(tag=tag)
    if kind == "tensor":
        value.tensor.CopyFrom(tensor_pb2.TensorProto(dtype=1, float_val=[number(rng)]))
    elif kind == "content":
        value.tensor.CopyFrom(tensor_pb2.TensorProto(dtype=1, tensor_content=struct.pack("<f", rng.gauss(0, 1))))
    elif kind == "double":
        value.tensor.CopyFrom(tensor_pb2.TensorProto(dtype=2, double_val=[number(rng)]))
    elif kind == "histogram":
        value.histo.CopyFrom(summary_pb2.HistogramProto(min=0, max=1, num=3, bucket=[1.0] * rng.randint(1, 3)))
    else:
        value.simple_value = number(rng)
    if kind == "metadata":
        value.metadata.plugin_data.plugin_name = "scalars"
    return [value, *(values_of("plain", f"{tag}/{k}", rng)[0] for k in range(2))] if kind == "several" else [value]


def stream(segments: list[Segment], seed: int, *, marks: bool) -> list[bytes]:
    rng = random.Random(seed)
    wall, payloads = 1.75e9, [event_pb2.Event(wall_time=1.75e9, file_version="brain.Event:2").SerializeToString()]
    for segment in segments:
        if marks and rng.random() < 0.3:
            payloads.append(event_pb2.Event(session_log=event_pb2.SessionLog(status=1)).SerializeToString())
        for k in range(segment.count):
            tags = list(segment.tags)
            if segment.shuffled:
                rng.shuffle(tags)
            for tag in tags:
                wall = math.nan if rng.random() < 0.001 else 1.75e9 + rng.random() * 1e4
                summary = summary_pb2.Summary(value=values_of(segment.kind, tag, rng))
                step = segment.first + segment.stride * k
                payloads.append(event_pb2.Event(wall_time=wall, step=step, summary=summary).SerializeToString())
    return payloads


def damaged(data: bytes, hits: list[tuple[str, float]]) -> bytes:
    changed = bytearray(data)
    for kind, where in hits:
        at = int(where * (len(changed) - 1))
        if kind == "flip":
            changed[at] ^= 0x24
        elif kind == "zero":
            changed[at : at + 700] = bytes(len(changed[at : at + 700]))
        elif kind == "delete":
            del changed[at : at + 33]
        else:
            del changed[at:]
        if len(changed) < 2:
            break
    return bytes(changed)


def reading(data: bytes, routes: Routes) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]], Any]:
    opened = opened_bytes("events.out.tfevents.1", data)
    sink = SourceSink(opened.source)
    read_points(opened, sink, DEFAULT, routes)
    frame = sink.frames().get("metrics")
    rows: list[tuple[Any, ...]] = []
    if frame is not None:
        bits = np.ascontiguousarray(frame["value"].to_numpy()).view(np.int64)
        rows = list(frame.with_columns(value=pl.Series(bits)).iter_rows())
    return rows, [(i.code, i.byte, i.message, i.count) for i in sink.issues], sink.coverage("tfevents")


SLOW_DATA = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@SLOW_DATA
@given(st.lists(SEGMENTS, min_size=1, max_size=5), st.integers(0, 1 << 16), st.booleans())
def test_a_whole_file_reads_the_same_by_every_route(segments: list[Segment], seed: int, marks: bool) -> None:
    data = b"".join(map(frame, stream(segments, seed, marks=marks)))
    expected = reading(data, FIELD_BY_FIELD)
    for routes in QUICK:
        assert reading(data, routes) == expected


@SLOW_DATA
@given(
    st.lists(SEGMENTS, min_size=1, max_size=3),
    st.integers(0, 1 << 16),
    st.lists(
        st.tuples(st.sampled_from(["flip", "flip", "zero", "delete", "cut"]), st.floats(0, 1)), min_size=1, max_size=4
    ),
)
def test_a_damaged_file_reads_the_same_by_every_route(
    segments: list[Segment], seed: int, hits: list[tuple[str, float]]
) -> None:
    data = damaged(b"".join(map(frame, stream(segments, seed, marks=False))), hits)
    expected = reading(data, FIELD_BY_FIELD)
    for routes in QUICK:
        assert reading(data, routes) == expected


@pytest.mark.parametrize("routes", QUICK, ids=str)
def test_one_flipped_byte_in_the_middle_of_a_stride_costs_one_record_at_most(routes: Routes) -> None:
    payloads = stream([Segment(("a", "loss", "lr"), 200, 400, 1, "plain", shuffled=False)], 3, marks=False)
    frames = list(map(frame, payloads))
    whole = reading(b"".join(frames), routes)[0]
    hit = len(frames) // 2
    begin = sum(map(len, frames[:hit]))
    for offset in range(len(frames[hit])):
        data = bytearray(b"".join(frames))
        data[begin + offset] ^= 0x11
        rows, issues, coverage = reading(bytes(data), routes)
        lost = [row for row in whole if row not in rows]
        assert len(whole) - len(rows) == len(lost) <= 1
        assert [issue[1] for issue in issues] == [begin] * len(lost)
        assert coverage.read_bytes + coverage.skipped_bytes == len(data)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6), st.sampled_from([-1.0, 0.5, 1.0, math.nan])), max_size=60),
    st.lists(st.integers(0, 60), max_size=5),
    st.lists(st.integers(0, 60), max_size=4),
    st.booleans(),
)
def test_attempts_of_many_points_are_attempts_point_by_point(
    points: list[tuple[int, int, float]], marks: list[int], cuts: list[int], has_epochs: bool
) -> None:
    marks = sorted(mark for mark in marks if mark <= len(points))
    one_by_one, expected = Attempts(), []
    for k, (tag, step, epoch) in enumerate(points):
        for _ in range(marks.count(k)):
            one_by_one.restart()
        expected.append(one_by_one.see(str(tag), step, epoch if has_epochs else None))
    together, found = Attempts(), list[int]()
    bounds = sorted({0, len(points), *(cut for cut in cuts if cut < len(points))})
    for begin, end in pairwise(bounds):
        part = points[begin:end]
        inside = [mark - begin for mark in marks if begin <= mark < end]
        tags, steps, epochs = (
            np.array([p[i] for p in part], kind) for i, kind in enumerate((np.int32, np.int64, np.float64))
        )
        found += together.see_many("0123", tags, (steps, epochs if has_epochs else None), inside).tolist()
    assert found == expected


@given(st.binary(max_size=120))
def test_any_payload_has_a_layout_or_none_and_nothing_is_raised(payload: bytes) -> None:
    layout = learn(payload)
    assert layout is None or len(layout.constant()) == len(payload)


@given(st.sampled_from(KINDS[:5]), st.integers(0, (1 << 56) - 1), st.integers(0, 1 << 16))
def test_a_layout_says_where_the_numbers_of_a_scalar_stand(kind: str, step: int, seed: int) -> None:
    value = values_of(kind, "tag", random.Random(seed))
    summary = summary_pb2.Summary(value=value)
    payload = event_pb2.Event(wall_time=1.5, step=step, summary=summary).SerializeToString()
    layout = learn(payload)
    assert layout is not None
    assert struct.unpack_from("<d", payload, layout.wall) == (1.5,)
    assert [place.tag for place in layout.places] == [v.tag for v in value]
    official = [v.simple_value if v.HasField("simple_value") else None for v in value]
    for place, number_of in zip(layout.places, official, strict=True):
        assert number_of is None or payload[place.at : place.at + 4] == struct.pack("<f", number_of)
