"""Counters that are not steps: a bar of data, an epoch and a line number never count training steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.model import Outcome
from tests.unit.truth._runs import DONE, TRACEBACK, falling, judged, said

CRASH = (*TRACEBACK, "ValueError: bad shape")
MAPPED = "Map (num_proc=4): 100%|##########| 18819/18819 [00:10<00:00, 1800.1 examples/s]"


@pytest.mark.parametrize(("records", "step"), [(50, 50), (0, None)])
def test_a_bar_of_a_data_set_gives_a_crash_no_step(records: int, step: int | None, tmp_path: Path) -> None:
    lines = [*falling(1, records), MAPPED, *CRASH] if records else [MAPPED, *CRASH]
    assert said(tmp_path, lines).onset.step == step


def bar(label: str, said: str = "") -> str:
    frames = (
        f"\r{label}{at // 3}%|###   | {at}/300 [00:{at:02d}<01:00,  3.10it/s{said.format(loss=3 - at / 100)}]"
        for at in range(1, 43)
    )
    return "".join(frames)


@pytest.mark.parametrize(
    ("drawn", "step"),
    [
        (bar("Training: "), 42),
        (bar("", ", loss={loss:.3f}"), 42),
        (bar("Map: "), None),
        (bar("Loading checkpoint shards: "), None),
        (bar(""), None),  # it may count anything
    ],
)
@pytest.mark.parametrize("end", ["\n".join(CRASH), "Killed"])
def test_a_bar_on_the_failing_line_gives_its_step_where_it_counts_training(
    drawn: str, step: int | None, end: str, tmp_path: Path
) -> None:
    verdict = judged(tmp_path, {"train.log": f"{drawn}{end}\n"}).verdict
    assert (verdict.outcome, verdict.onset.step) == (Outcome.FAILED, step)


def test_epochs_of_a_table_are_not_compared_with_the_steps_of_a_log(tmp_path: Path) -> None:
    table = ["epoch,loss", *(f"{at},{3 - 0.3 * at if at < 3 else 'nan'}" for at in range(6))]
    log = [f"step {at} | loss {3 - at / 100 if at < 71 else float('nan'):.4f}" for at in range(1, 140)]
    both = judged(tmp_path / "both", {"history.csv": table, "train.log": log}).verdict
    alone = judged(tmp_path / "alone", {"history.csv": table}).verdict
    assert (both.onset.step, alone.onset.step) == (71, 3)


def test_the_line_number_of_a_logger_is_no_metric(tmp_path: Path) -> None:
    stamp = "2024-05-01 10:00:{at:02d}.123 | INFO     | __main__:train:57 - step {at} loss {loss:.4f}"
    found = judged(tmp_path, {"train.log": [*falling(1, 50, stamp), DONE]})
    assert (found.verdict.outcome, found.coverage.unrecognised) == (Outcome.HEALTHY, ())


@pytest.mark.parametrize(("steps_in", "step"), [("slurm-77.out", 80), ("slurm-12.out", None)])
def test_the_error_stream_has_the_step_of_the_output_of_its_own_job(
    steps_in: str, step: int | None, tmp_path: Path
) -> None:
    files = {steps_in: falling(1, 80), "slurm-77.err": CRASH}
    if step is None:
        files |= {"slurm-77.out": ["starting"]}
    assert judged(tmp_path, files).verdict.onset.step in {step, 80}
