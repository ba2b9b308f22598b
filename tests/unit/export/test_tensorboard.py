"""What is written as event files reads back as the same points, with our reader and with tensorboard's."""

from __future__ import annotations

import math

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from .conftest import HOSTILE, Back, exported, made, points

T0 = 1_750_000_000_500_000_000
VALUES = (0.1, 1 / 3, -0.0, 5e-324, 1.7976931348623157e308, math.nan, math.inf, -math.inf, 2.0)


def test_every_bit_of_a_value_comes_back_with_its_step_and_time(back: Back) -> None:
    run = made([{"raw_name": "loss", "step": 7 * n, "t_ns": T0 + n, "value": v} for n, v in enumerate(VALUES)])
    again = back(exported(run, "tensorboard"))
    assert points(again, "raw_name", "name", "step") == points(run, "raw_name", "name", "step")
    times = zip(again.collect("metrics")["t_ns"], run.collect("metrics")["t_ns"], strict=True)
    assert all(abs(a - b) <= 240 for a, b in times)


def test_the_same_file_reads_the_same_in_tensorboard(back: Back, tmp_path: pytest.TempPathFactory) -> None:
    run = made(
        [{"raw_name": "loss", "step": n, "value": v} for n, v in enumerate(VALUES)]
        + [{"raw_name": "lr", "step": n, "value": n / 8} for n in range(5)]
    )
    back(exported(run, "tensorboard"))
    seen = EventAccumulator(str(tmp_path / "back" / "train.log"), size_guidance={"scalars": 0, "tensors": 0}).Reload()
    assert [(e.step, e.value) for e in seen.Scalars("lr")] == [(n, n / 8) for n in range(5)]
    told = [e.tensor_proto.double_val[0].hex() for e in seen.Tensors("loss")]
    assert told == [v.hex() for v in VALUES]
    assert seen.SummaryMetadata("loss").plugin_data.plugin_name == "scalars"


def test_values_that_32_bits_hold_are_plain_scalars_as_trainers_write_them() -> None:
    narrow = made([{"raw_name": "loss", "step": n, "value": v} for n, v in enumerate((0.5, math.nan, math.inf))])
    wide = made([{"raw_name": "loss", "step": 0, "value": 0.1}])
    assert b"scalars" not in exported(narrow, "tensorboard").files[0].data
    assert b"scalars" in exported(wide, "tensorboard").files[0].data


def test_ranks_and_attempts_have_their_own_folders_and_come_back(back: Back) -> None:
    run = made(
        [
            {"raw_name": "loss", "step": step, "rank": rank, "attempt": attempt, "value": rank + step / 4 + attempt}
            for rank in (0, 3)
            for attempt in (0, 1)
            for step in range(4)
        ]
    )
    export = exported(run, "tensorboard")
    folders = {file.path.rpartition("/")[0] for file in export.files}
    assert folders == {f"train.log/rank_{rank}/attempt_{attempt}" for rank in (0, 3) for attempt in (0, 1)}
    columns = ("rank", "attempt", "step")
    assert sorted(points(back(export), *columns)) == sorted(points(run, *columns))


def test_what_an_event_file_cannot_hold_is_said_and_never_made_up(back: Back) -> None:
    run = made(
        [{"raw_name": "loss", "value": 1.5}, {"raw_name": "loss", "value": None}, {"raw_name": "lr", "value": 2.5}]
    )
    export = exported(run, "tensorboard")
    assert export.notes == (
        "1 point left out whose value is null: an event file has no null",
        "2 points without a step, numbered in the order of the records",
    )
    again = back(export)
    assert points(again, "raw_name", "step") == [("loss", 0, (1.5).hex()), ("lr", 1, (2.5).hex())]
    assert again.collect("metrics")["t_ns"].null_count() == 2


def test_points_without_a_step_are_numbered_behind_the_last(back: Back) -> None:
    run = made([{"raw_name": "loss", "step": s, "value": v} for s, v in ((None, 1.0), (40, 2.0), (None, 3.0))])
    assert points(back(exported(run, "tensorboard")), "step") == [
        (40, (2.0).hex()),
        (41, (1.0).hex()),
        (42, (3.0).hex()),
    ]


def test_a_value_in_another_unit_stands_under_the_name_of_its_unit() -> None:
    rows = [{"raw_name": "elapsed time per iteration (ms)", "name": "step_time_s", "step": 1, "value": 0.25}]
    data = exported(made(rows), "tensorboard").files[0].data
    assert b"step_time_s" in data
    assert b"(ms)" not in data


def test_hostile_names_are_data_and_come_back_as_they_are(back: Back) -> None:
    run = made([{"raw_name": name, "step": n, "value": 1.0} for n, name in enumerate(HOSTILE)])
    assert points(back(exported(run, "tensorboard")), "raw_name") == points(run, "raw_name")
