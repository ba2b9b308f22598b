"""TensorBoard event files, written with tensorboard's own record writer and message classes.

One sub-directory per source, rank and attempt. Steps are kept as they are and wall times as 64-bit seconds (exact to
240 ns); a point without a step is numbered behind the last, a point without a time is at 0. A tag whose every value is
a 32-bit float is written as `simple_value`, as trainers do; any other as a 64-bit tensor of the scalars plugin, so that
no bit is lost. NaN and the infinities are kept. A null has no form here and is left out, and a note says so.
"""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

import polars as pl

from forensics.export.points import numbered, seconds, series_of, tagged, unstepped_note
from forensics.export.target import Export, File, Selection, Target
from forensics.report.phrases import plural

_DT_DOUBLE = 2
_FILE_VERSION = "brain.Event:2"


def write(selection: Selection) -> Export:
    """Write one event file per series; raises `ImportError` when tensorboard is not installed."""
    points = tagged(selection.points)
    nulls = points["value"].null_count()
    notes = [f"{plural(nulls, 'point')} left out whose value is null: an event file has no null"] if nulls else []
    files: list[File] = []
    unstepped = 0
    for series in series_of(points.filter(pl.col("value").is_not_null())):
        rows, missing = numbered(series.points)
        unstepped += missing
        begun = max(next(iter(series.points["t_ns"].drop_nulls()), 0), 0) // 1_000_000_000
        name = f"events.out.tfevents.{begun:010d}.forensics"
        files.append(File("/".join((*series.parts, name)), _events(rows)))
    if unstepped:
        notes.append(unstepped_note(unstepped))
    return Export(tuple(files), tuple(notes))


def _events(points: pl.DataFrame) -> bytes:
    messages: Any = import_module("tensorboard.compat.proto.event_pb2")
    summaries: Any = import_module("tensorboard.compat.proto.summary_pb2")
    tensors: Any = import_module("tensorboard.compat.proto.tensor_pb2")
    scalar: Any = import_module("tensorboard.plugins.scalar.metadata")
    writer: Any = import_module("tensorboard.summary.writer.record_writer")
    buffer = io.BytesIO()
    records = writer.RecordWriter(buffer)
    rows = points.select("tag", "step", "t_ns", "value").rows()
    start = seconds(rows[0][2]) if rows else 0.0
    records.write(messages.Event(wall_time=start, file_version=_FILE_VERSION).SerializeToString())
    narrow = _fits_32_bits(points)
    described: set[str] = set()
    for tag, step, t_ns, value in rows:
        if tag in narrow:
            one = summaries.Summary.Value(tag=tag, simple_value=value)
        else:
            one = summaries.Summary.Value(tag=tag, tensor=tensors.TensorProto(dtype=_DT_DOUBLE, double_val=[value]))
            if tag not in described:
                described.add(tag)
                one.metadata.CopyFrom(scalar.create_summary_metadata(display_name="", description=""))
                one.metadata.data_class = summaries.DATA_CLASS_SCALAR
        event = messages.Event(wall_time=seconds(t_ns), step=step, summary=summaries.Summary(value=[one]))
        records.write(event.SerializeToString())
    return buffer.getvalue()


def _fits_32_bits(points: pl.DataFrame) -> frozenset[str]:
    """Tags whose every value is a 32-bit float, NaN or infinite."""
    value = pl.col("value")
    exact = value.is_nan() | (value.cast(pl.Float32, strict=False).cast(pl.Float64) == value)
    return frozenset(points.group_by("tag").agg(exact.all().alias("fits")).filter("fits")["tag"])


TARGET = Target("tensorboard", write, ("tensorboard --logdir PLACE",), folder=True)
