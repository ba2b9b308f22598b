"""Event files: every point as the official reader decodes it, restarts kept, damage stated."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2
from tensorboard.util import tensor_util

from forensics.errors import NotMine
from forensics.formats.tfevents.reader import config_of, read
from forensics.io.records.tfrecord import Record, frame
from forensics.io.records.tfrecord import read as records_of
from forensics.model import FileStatus

FIXTURES = sorted((Path(__file__).parents[3] / "fixtures" / "tfevents").iterdir())
NUMERIC = {1, 2, 3, 4, 5, 6, 9, 10, 17, 19}
Run = Callable[..., Any]


def payload(*values: summary_pb2.Summary.Value, step: int = 1, wall_time: float = 1.75e9) -> bytes:
    made = event_pb2.Event(wall_time=wall_time, step=step, summary=summary_pb2.Summary(value=values))
    return made.SerializeToString()


def scalar(tag: str, number: float) -> summary_pb2.Summary.Value:
    return summary_pb2.Summary.Value(tag=tag, simple_value=number)


def by_message_class(data: bytes) -> list[tuple[str, int, int, int, bytes]]:
    found: list[tuple[str, int, int, int, bytes]] = []
    for item in records_of(data):
        if not isinstance(item, Record):
            continue
        event = event_pb2.Event.FromString(item.payload)
        for value in event.summary.value:
            kind = value.WhichOneof("value")
            if kind == "simple_value":
                number = value.simple_value
            elif kind == "tensor" and value.tensor.dtype in NUMERIC and not value.tensor.tensor_shape.dim:
                number = float(tensor_util.make_ndarray(value.tensor))
            else:
                continue
            found.append((value.tag, item.index, item.byte, event.step, struct.pack("<d", number)))
    return found


def ours(metrics: pl.DataFrame) -> list[tuple[str, int, int, int, bytes]]:
    rows = metrics.select("raw_name", "seq", "byte", "step", "value").iter_rows()
    return [(tag, seq, byte, step, struct.pack("<d", number)) for tag, seq, byte, step, number in rows]


@pytest.mark.parametrize("folder", FIXTURES, ids=lambda p: p.name)
def test_every_point_is_what_the_message_classes_decode_bit_for_bit(folder: Path, run: Run) -> None:
    data = next(folder.iterdir()).read_bytes()
    wrote = run(read, "events.out.tfevents.1", data)
    assert ours(wrote.table("metrics")) == by_message_class(data)
    assert wrote.coverage.read_bytes + wrote.coverage.skipped_bytes == len(data)


def test_the_official_accumulator_has_the_same_series(tmp_path: Path, run_fixture: Run) -> None:
    folder = next(p for p in FIXTURES if p.name == "ok-torch")
    (tmp_path / "events.out.tfevents.1").write_bytes(next(folder.iterdir()).read_bytes())
    official = EventAccumulator(str(tmp_path), size_guidance={"scalars": 0}).Reload()
    metrics = run_fixture(read, "tfevents/ok-torch").table("metrics")
    for tag in official.Tags()["scalars"]:
        mine = metrics.filter(pl.col("raw_name") == tag)
        assert [(e.step, e.value) for e in official.Scalars(tag)] == list(mine.select("step", "value").iter_rows())


@pytest.mark.parametrize(
    ("dtype", "field", "number"),
    [
        (1, "float_val", 0.1),
        (2, "double_val", 0.1),
        (3, "int_val", -7),
        (4, "int_val", 200),
        (9, "int64_val", -(1 << 40)),
        (10, "bool_val", True),
        (19, "half_val", 0x3E00),
    ],
)
def test_a_tensor_of_one_number_is_a_point(dtype: int, field: str, number: float, run: Run) -> None:
    tensor = tensor_pb2.TensorProto(dtype=dtype, **{field: [number]})
    data = frame(payload(summary_pb2.Summary.Value(tag="x", tensor=tensor)))
    assert ours(run(read, "tfevents", data).table("metrics")) == by_message_class(data)


@pytest.mark.parametrize(
    ("dtype", "layout", "number"), [(1, "<f", 2.5), (2, "<d", math.nan), (9, "<q", 3), (19, "<e", 0.5)]
)
def test_a_tensor_kept_as_bytes_is_a_point(dtype: int, layout: str, number: float, run: Run) -> None:
    tensor = tensor_pb2.TensorProto(dtype=dtype, tensor_content=struct.pack(layout, number))
    data = frame(payload(summary_pb2.Summary.Value(tag="x", tensor=tensor)))
    assert ours(run(read, "tfevents", data).table("metrics")) == by_message_class(data)


def test_a_vector_and_an_image_are_no_points(run: Run) -> None:
    vector = tensor_pb2.TensorProto(dtype=1, float_val=[1.0, 2.0])
    vector.tensor_shape.dim.add(size=2)
    image = summary_pb2.Summary.Image(height=1, width=1, encoded_image_string=b"x")
    values = [summary_pb2.Summary.Value(tag="v", tensor=vector), summary_pb2.Summary.Value(tag="i", image=image)]
    assert run(read, "tfevents", frame(payload(*values, scalar("loss", 1.5)))).points("loss") == [(1, 1.5)]


def test_steps_and_times_at_their_edges_are_kept_or_null(run: Run) -> None:
    odd = [(0, math.nan), (-5, math.inf), ((1 << 63) - 1, -1.0), (1 << 32, 1.75e9)]
    data = b"".join(frame(payload(scalar(f"m{i}", 1.0), step=s, wall_time=w)) for i, (s, w) in enumerate(odd))
    metrics = run(read, "tfevents", data).table("metrics")
    assert metrics["step"].to_list() == [s for s, _ in odd]
    assert metrics["t_ns"].to_list() == [None, None, None, 1_750_000_000_000_000_000]


def test_non_finite_numbers_stay_and_are_classed(run_fixture: Run) -> None:
    metrics = run_fixture(read, "tfevents/crash-nan").table("metrics")
    loss = metrics.filter(pl.col("name") == "loss")
    assert loss.filter(pl.col("value").is_nan())["step"].to_list() == list(range(38, 51))
    norm = metrics.filter((pl.col("name") == "grad_norm") & (pl.col("step") >= 38))
    assert norm["value_class"].to_list() == ["+inf"] + ["nan"] * 12


def test_a_restart_is_the_next_attempt_and_the_overwritten_points_stay(run_fixture: Run) -> None:
    metrics = run_fixture(read, "tfevents/ok-restart-overlap").table("metrics")
    loss = metrics.filter(pl.col("name") == "loss").group_by("attempt", maintain_order=True).agg("step")
    assert loss["attempt"].to_list() == [0, 1]
    assert loss["step"].to_list() == [list(range(1, 41)), list(range(31, 61))]


def test_a_session_mark_after_points_begins_an_attempt_but_the_first_one_does_not(run_fixture: Run) -> None:
    metrics = run_fixture(read, "tfevents/ok-session-restart").table("metrics")
    assert metrics.filter(pl.col("attempt") == 1)["step"].min() == 31
    assert metrics["attempt"].unique().sort().to_list() == [0, 1]


def test_metrics_on_different_axes_do_not_look_like_restarts(run: Run) -> None:
    parts = [(scalar("loss", 1.0), 100 * k) for k in range(5)]
    parts += [(scalar("epoch_loss", 1.0), k) for k in range(5)]
    order = [part for pair in zip(parts[:5], parts[5:], strict=True) for part in pair]
    data = b"".join(frame(payload(value, step=step)) for value, step in order)
    assert run(read, "tfevents", data).table("metrics")["attempt"].unique().to_list() == [0]


def test_settings_and_json_texts_are_facts_and_other_texts_are_events(run_fixture: Run) -> None:
    wrote = run_fixture(read, "tfevents/ok-tensors-text-hparams")
    facts = dict(wrote.table("facts").select("key", "value").iter_rows())
    assert facts == {"batch_size": "32.0", "optimizer": '"adamw"', "args.seed": "7", "args.fp16": "true"}
    assert wrote.table("events")["text"].to_list() == ["first try"]
    assert len(wrote.points("loss")) == 30


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("|param|value|\n|-|-|\n|total_timesteps|500000|\n|env_id|CartPole-v1|", ["500000", "CartPole-v1"]),
        ("|param|value|\n|total_timesteps|500000|", []),  # no line parts the header from rows
        ("a text | of | bars", []),
    ],
)
def test_a_markdown_table_of_two_columns_holds_settings(text: str, facts: list[str]) -> None:
    assert [value for _, value, _ in config_of("hyperparameters/text_summary", text)] == facts


def test_a_cut_file_says_so_and_loses_only_its_last_record(run_fixture: Run) -> None:
    wrote = run_fixture(read, "tfevents/broken-truncated")
    assert [issue.code for issue in wrote.issues] == ["truncated"]
    assert wrote.table("metrics").height == 179
    assert wrote.coverage.status is FileStatus.PARTIAL


def test_a_flipped_byte_costs_one_record(run_fixture: Run) -> None:
    wrote = run_fixture(read, "tfevents/broken-flipped-byte")
    assert len(wrote.issues) == 1
    assert wrote.table("metrics").height == 179


def test_a_zeroed_block_costs_the_records_it_touches(run_fixture: Run) -> None:
    wrote = run_fixture(read, "tfevents/broken-zeroed-4k")
    assert len(wrote.issues) == 1
    assert 0 <= wrote.issues[0].byte - 4096 + 64 <= 64
    assert wrote.table("metrics").height >= 360 - 4096 // 44 - 2


def test_a_sound_record_that_is_no_event_is_stated_and_the_rest_is_read(run: Run) -> None:
    data = frame(b"\x0b\xff\xff") + frame(b"\x2a\x7f") + frame(payload(scalar("loss", 2.0)))
    wrote = run(read, "tfevents", data)
    assert [issue.code for issue in wrote.issues] == ["not-an-event"] * 2
    assert wrote.points("loss") == [(1, 2.0)]


def test_text_that_is_merely_named_so_is_left_to_others(run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "notes-on-tfevents.txt", b"these are notes\n")
