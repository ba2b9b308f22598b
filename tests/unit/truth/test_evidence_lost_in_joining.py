"""Evidence lost in joining: a second store of a run takes nothing from what the first one shows."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.record_writer import RecordWriter

from forensics.cli.main import run as command
from forensics.model import Outcome
from tests.unit.truth._runs import DONE, judged, write

LAST_GOOD = 55


def loss(at: int) -> float:
    return 3 - at / 100 if at <= LAST_GOOD else math.nan


def log(last: int) -> list[str]:
    """A loss at each step, and a checkpoint every ten."""
    return [
        line
        for at in range(1, last + 1)
        for line in (
            f"step {at} | loss: {loss(at):.4f}",
            *([f"saved checkpoint out/step_{at}"] if at % 10 == 0 and at <= 30 else []),
        )
    ]


def event_file(place: Path, last: int) -> None:
    place.mkdir(parents=True)
    with (place / "events.out.tfevents.1750000000.node-a.77.0").open("wb") as out:
        writer = RecordWriter(out)
        for at in range(1, last + 1):
            value = summary_pb2.Summary.Value(tag="train/loss", simple_value=loss(at))
            event = event_pb2.Event(wall_time=1.75e9 + at, step=at, summary=summary_pb2.Summary(value=[value]))
            writer.write(event.SerializeToString())


@pytest.mark.parametrize("beside", [False, True])
def test_a_log_beside_event_files_keeps_its_checkpoints_and_its_past(
    *, beside: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if beside:
        event_file(tmp_path / "run" / "tb", 80)
    found = judged(tmp_path, {"train.log": log(80)})
    assert (found.verdict.onset.step, found.verdict.cause == "from_start") == (LAST_GOOD + 1, False)
    assert (found.verdict.checkpoint.step if found.verdict.checkpoint else None) == 30
    command(["nan-origin", str(tmp_path / "run"), "--format", "json", "--exit-zero"])
    told = json.loads(capsys.readouterr().out)
    assert (told["kind"] == "from_start", told["last_clean_checkpoint"]["step"]) == (False, 30)


def test_a_detectors_line_is_judged_with_the_losses_of_another_store(tmp_path: Path) -> None:
    event_file(tmp_path / "run" / "tb", LAST_GOOD)
    write(
        tmp_path / "run", {"train.log": ["training starts", "saved checkpoint out/step_30", "loss is NaN, giving up"]}
    )
    found = judged(tmp_path, {})
    assert (found.verdict.onset.step, found.verdict.cause == "from_start") == (LAST_GOOD + 1, False)


def test_two_stores_that_are_finite_are_no_nan(tmp_path: Path) -> None:
    event_file(tmp_path / "run" / "tb", LAST_GOOD)
    assert judged(tmp_path, {"train.log": [*log(LAST_GOOD), DONE]}).verdict.outcome is Outcome.HEALTHY
