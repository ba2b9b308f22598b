"""Event files made at random, and a second reader of them: struct, tensorboard's messages, one record after the other.

A file is told as what a training loop does: stretches of steps that log the same tags, as one number each, several in a
record, tensors, text or histograms between, session marks, and a step that falls back.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from hypothesis import strategies as st
from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2

from forensics.io.records.tfrecord import frame

NAME = "events.out.tfevents.1750000000.node-a.1.0"
ODD = (math.nan, math.inf, -math.inf, -0.0, 0.0, 1e-45, 3.4e38)
Value = summary_pb2.Summary.Value


class Point(NamedTuple):
    """One row as the file says it; `bits` are those of the value as a double."""

    seq: int
    byte: int
    tag: str
    step: int
    t_ns: int | None
    attempt: int
    bits: bytes


@dataclass(frozen=True)
class Stretch:
    """`count` steps from `first` on, each with these tags; `form` is how a number is written."""

    tags: tuple[str, ...]
    first: int
    count: int
    by: int
    form: str
    shuffled: bool
    marked: bool


FORMS = ("plain", "plain", "plain", "plain", "tensor", "content", "double", "several", "metadata", "text", "large")
STRETCHES = st.lists(
    st.builds(
        Stretch,
        st.lists(st.sampled_from(["a", "b/c", "loss", "train/loss", "x" * 130]), min_size=1, max_size=3).map(tuple),
        st.sampled_from([0, 1, 100, 120, 16_300, (1 << 21) - 30, (1 << 42) - 20, (1 << 56) - 40, 1 << 62, -20]),
        st.sampled_from([1, 3, 60, 150]),
        st.sampled_from([0, 1, 1, 7, -1]),
        st.sampled_from(FORMS),
        st.sampled_from([False, False, True]),
        st.sampled_from([False, False, False, True]),
    ),
    min_size=1,
    max_size=3,
)


def _number(rng: random.Random) -> float:
    return rng.choice(ODD) if rng.random() < 0.05 else rng.gauss(0, 10)


def _values(form: str, tag: str, rng: random.Random) -> list[Value]:
    if form == "tensor":
        return [Value(tag=tag, tensor=tensor_pb2.TensorProto(dtype=1, float_val=[_number(rng)]))]
    if form == "content":
        packed = struct.pack("<f", rng.gauss(0, 1))
        return [Value(tag=tag, tensor=tensor_pb2.TensorProto(dtype=1, tensor_content=packed))]
    if form == "double":
        return [Value(tag=tag, tensor=tensor_pb2.TensorProto(dtype=2, double_val=[_number(rng)]))]
    if form == "text":
        words = b"w" * rng.choice([3, 9_000, 17_000])
        return [Value(tag=tag + "/text_summary", tensor=tensor_pb2.TensorProto(dtype=7, string_val=[words]))]
    if form == "large":
        bins = [rng.random()] * rng.choice([3, 1_000, 2_300])
        return [Value(tag=tag, histo=summary_pb2.HistogramProto(min=0, max=1, num=3, bucket=bins))]
    value = Value(tag=tag, simple_value=_number(rng))
    if form == "metadata":
        value.metadata.plugin_data.plugin_name = "scalars"
    return [value, *(_values("plain", f"{tag}/{k}", rng)[0] for k in range(2))] if form == "several" else [value]


def payloads(stretches: list[Stretch], seed: int) -> Iterator[bytes]:
    """Messages of one file, in order."""
    rng = random.Random(seed)
    yield event_pb2.Event(wall_time=1.75e9, file_version="brain.Event:2").SerializeToString()
    for stretch in stretches:
        if stretch.marked:
            yield event_pb2.Event(session_log=event_pb2.SessionLog(status=1)).SerializeToString()
        for k in range(stretch.count if stretch.form not in {"text", "large"} else min(stretch.count, 4)):
            for tag in rng.sample(stretch.tags, len(stretch.tags)) if stretch.shuffled else stretch.tags:
                wall = rng.choice([math.nan, -1.0, 0.0, 1e300]) if rng.random() < 0.002 else 1.75e9 + rng.random() * 1e4
                summary = summary_pb2.Summary(value=_values(stretch.form, tag, rng))
                step = stretch.first + stretch.by * k
                yield event_pb2.Event(wall_time=wall, step=step, summary=summary).SerializeToString()


def log_of(stretches: list[Stretch], seed: int) -> bytes:
    """One whole file."""
    return b"".join(map(frame, payloads(stretches, seed)))


def spans(data: bytes) -> list[tuple[int, int]]:
    """Begin and end of each record of a sound file."""
    at, found = 0, list[tuple[int, int]]()
    while at < len(data):
        end = at + 16 + struct.unpack_from("<Q", data, at)[0]
        found.append((at, end))
        at = end
    return found


def _scalar(value: Value) -> float | None:
    if value.HasField("simple_value"):
        return value.simple_value
    tensor = value.tensor
    if value.HasField("tensor") and tensor.dtype in {1, 2}:
        size = 4 * tensor.dtype
        packed: Any = tensor.float_val if tensor.dtype == 1 else tensor.double_val
        return packed[0] if packed else struct.unpack("<f" if size == 4 else "<d", tensor.tensor_content)[0]
    return None


def points(data: bytes) -> list[Point]:
    """All points of a sound file; a restart is a step of a tag below its last one, or a session mark after points."""
    found = list[Point]()
    last, attempt = dict[str, int](), 0
    for seq, (begin, end) in enumerate(spans(data)):
        event = event_pb2.Event.FromString(data[begin + 12 : end - 4])
        if event.session_log.status == 1 and last:
            attempt, last = attempt + 1, {}
        for value in event.summary.value:
            number = _scalar(value)
            if number is None:
                continue
            if event.step < last.get(value.tag, event.step):
                attempt, last = attempt + 1, {}
            last[value.tag] = event.step
            known = 0 < event.wall_time < 9.2e9
            t_ns = round(event.wall_time * 1e9) if known else None
            found.append(Point(seq, begin, value.tag, event.step, t_ns, attempt, struct.pack("<d", number)))
    return found
