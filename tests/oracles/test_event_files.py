"""Event files against tensorboard's own reader: every point of every tag, across every buffer at least three times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto import event_pb2, summary_pb2

from forensics import pipeline
from forensics.io.limits import DEFAULT
from forensics.io.tfrecord import frame

pytestmark = pytest.mark.usefixtures("only_owned_columns")
NAME = "events.out.tfevents.1750000000.node-a.1.0"


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


def expected(folder: Path, tag: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Steps, values and nanoseconds that tensorboard reads."""
    points = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload().Scalars(tag)
    times = np.rint(np.array([p.wall_time for p in points]) * 1e9).astype(np.int64)
    return np.array([p.step for p in points]), np.array([p.value for p in points]), times


@pytest.mark.parametrize("batch_rows", [7, 64, 1000])
def test_every_point_is_kept_when_the_buffer_is_filled_again(tmp_path: Path, batch_rows: int) -> None:
    written(tmp_path / NAME, 1200, ["loss", "lr", "grad_norm"])
    limits = replace(DEFAULT, batch_rows=batch_rows)
    rows = pipeline.ingest_run(tmp_path, limits=limits).collect("metrics")
    for tag in ("loss", "lr", "grad_norm"):
        step, value, t_ns = expected(tmp_path, tag)
        own = rows.filter(pl.col("raw_name") == tag)
        np.testing.assert_array_equal(own["step"].to_numpy(), step)
        np.testing.assert_array_equal(own["value"].to_numpy(), value)
        np.testing.assert_array_equal(own["t_ns"].to_numpy(), t_ns)
