"""Counters that are not steps: what counts data, epochs or a tracker's records dates nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import triage
from forensics.model import Onset

_TRACEBACK = [
    "Traceback (most recent call last):",
    '  File "train.py", line 9, in <module>',
    "KeyError: 'rope_scaling'",
]


def _onset(place: Path, **files: list[str]) -> Onset:
    for name, lines in files.items():
        (place / name.replace("__", ".")).write_text("\n".join(lines) + "\n", encoding="utf-8")
    onset = triage(place).verdict.onset
    assert onset is not None
    return onset


def _drawn(done: int, plan: int, label: str = "", per: str = "it/s") -> str:
    return f"{label}{100 * done // plan:3d}%|███| {done}/{plan} [00:{done % 60:02d}<01:00,  2.00{per}]"


def _loss(at: int) -> float:
    return 3 - at / 100


def test_a_bar_of_a_data_set_dates_no_crash(tmp_path: Path) -> None:
    data = [_drawn(at, 18819, "Map (num_proc=4): ", " examples/s") for at in range(0, 18820, 3137)]
    steps = [f"step {at} loss {_loss(at):.4f}" for at in range(1, 21)]
    assert _onset(tmp_path, train__log=[*data, *steps, *_TRACEBACK]).step == 20


def test_a_crash_while_data_is_prepared_has_no_step(tmp_path: Path) -> None:
    data = [_drawn(at, 18819, "Map (num_proc=4): ", " examples/s") for at in range(0, 15686, 3137)]
    assert _onset(tmp_path, train__log=[*data, *_TRACEBACK]).step is None


def test_the_bar_on_the_failing_line_dates_a_crash_between_two_records(tmp_path: Path) -> None:
    lines: list[str] = []
    for at in range(1, 79):
        lines.append(_drawn(at, 140))
        if at % 25 == 0:
            lines.append(
                f"{{'loss': {_loss(at):.4f}, 'grad_norm': 0.5, 'learning_rate': 0.001, 'epoch': {at / 140:.2f}}}"
            )
    log = "\r".join(lines) + _TRACEBACK[0]
    assert _onset(tmp_path, train__log=[log, *_TRACEBACK[1:]]).step == 78


def test_the_bar_of_an_evaluation_on_the_failing_line_dates_none(tmp_path: Path) -> None:
    steps = [f"step {at} loss {_loss(at):.4f}" for at in range(1, 41)]
    bars = "\r".join(_drawn(at, 7, "Evaluating: ") for at in range(1, 6)) + _TRACEBACK[0]
    assert _onset(tmp_path, train__log=[*steps, bars, *_TRACEBACK[1:]]).step == 40


def test_epochs_of_a_table_are_not_compared_with_steps_of_a_log(tmp_path: Path) -> None:
    log = [f"step {at} loss {_loss(at) if at < 71 else float('nan'):.4f}" for at in range(1, 101)]
    table = [
        "epoch,loss,val_loss",
        *(f"{e},{_loss(25 * e):.4f},{2 - e / 9:.4f}" for e in (1, 2)),
        "3,nan,nan",
        "4,nan,nan",
    ]
    assert _onset(tmp_path, train__log=log, metrics__csv=table).step == 71


def test_a_table_of_epochs_alone_is_dated_by_them(tmp_path: Path) -> None:
    table = [
        "epoch,loss,val_loss",
        *(f"{e},{_loss(e):.4f},{2 - e / 90:.4f}" for e in range(12)),
        "12,nan,nan",
        "13,nan,nan",
    ]
    assert _onset(tmp_path, metrics__csv=table).step == 12


@pytest.mark.parametrize(("axis", "step"), [("trainer/global_step", 310), ("custom", 31)])
def test_the_trainers_step_comes_before_the_count_of_a_trackers_records(tmp_path: Path, axis: str, step: int) -> None:
    rows = [f"{at},{1_760_000_000 + at},{10 * at},{_loss(at) if at < 31 else 'NaN'}" for at in range(1, 41)]
    table = [f"_step,_timestamp,{axis},train/loss", *rows]
    assert _onset(tmp_path, history__csv=table).step == step


def test_the_place_in_the_program_that_logs_is_no_metric(tmp_path: Path) -> None:
    log = [
        f"2026-01-01 10:00:{at:02d}.123 | INFO     | trainer:train_step:{180 + at % 3} - step {at} loss {_loss(at):.4f}"
        for at in range(1, 41)
    ]
    assert _onset(tmp_path, train__log=[*log, *_TRACEBACK]).step == 40
    assert not {f for finding in triage(tmp_path).findings for f in finding.numbers if "train_step" in f}
