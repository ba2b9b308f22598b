"""What a NaN is judged by: all that a run says of it, in whichever file it says it, under the user's thresholds."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from forensics import pipeline
from forensics.analyses.nan.origin import NanOrigin, origin
from forensics.model import Shape

STEPS = "".join(f"step {s} loss {3 - s / 100:.4f} grad_norm 1.0\n" for s in range(1, 91))
FATAL_SCALE = "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.\n"
TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    step()\n'


def asked(place: Path, **files: str) -> NanOrigin:
    """Write a run, ask for the origin of its NaN, and that `triage` names the same step and checkpoint."""
    for name, text in files.items():
        (place / name.replace("_", ".")).write_text(text)
    run = pipeline.ingest_run(place)
    found, verdict = origin(run), pipeline.report_of(run).verdict
    if verdict.shape is Shape.NAN:
        assert (verdict.onset.step, verdict.checkpoint) == (found.first_bad_step, found.last_clean_checkpoint)
    return found


def test_a_fatal_line_of_the_loss_scale_decides_what_the_infinite_gradients_before_it_are(tmp_path: Path) -> None:
    overflow = "".join(f"step {s} loss 2.1 grad_norm inf\n" for s in range(91, 120))
    found = asked(tmp_path, train_log=STEPS + overflow + TRACEBACK + FATAL_SCALE)
    assert (found.kind, found.first_bad_step) == ("loss_scale_collapse", 91)


def test_a_line_of_the_loss_scale_that_the_run_got_over_decides_nothing(tmp_path: Path) -> None:
    over = "WARNING caught: " + FATAL_SCALE + "".join(f"step {s} loss 2.1 grad_norm 1.0\n" for s in range(91, 191))
    assert asked(tmp_path, train_log=STEPS + over).kind == "none"


def test_infinite_gradients_without_a_word_of_the_scale_are_no_collapse_of_it(tmp_path: Path) -> None:
    overflow = "".join(f"step {s} loss 2.1 grad_norm inf\n" for s in range(91, 120))
    assert asked(tmp_path, train_log=STEPS + overflow).kind == "optimization_blowup"


def records(count: int) -> str:
    """The same losses as a tracker's file."""
    rows = ({"step": s, "loss": round(3 - s / 100, 4), "grad_norm": 1.0} for s in range(1, count + 1))
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize("beside", [{}, {"metrics_jsonl": records(90)}])
def test_a_log_s_last_line_keeps_its_place_whether_or_not_a_tracker_holds_the_losses_too(
    tmp_path: Path, beside: dict[str, str]
) -> None:
    log = STEPS.replace("step 61 ", "saved checkpoint to out/step_60.pt\nstep 61 ")
    found = asked(tmp_path, train_log=log + "Loss is nan, stopping training\n", **beside)
    assert (found.kind, found.last_clean_step, found.first_bad_step) == ("data_or_numerics", 90, 91)
    assert found.last_clean_checkpoint is not None
    assert found.last_clean_checkpoint.step == 60


def test_a_lone_line_of_a_late_step_does_not_say_that_the_run_was_never_finite(tmp_path: Path) -> None:
    log = "starting\nLoss became infinite or NaN at iteration=2137!\n"
    assert (asked(tmp_path, train_log=log).kind, asked(tmp_path, train_log=log).first_bad_step) == ("unknown", 2137)


def test_a_lone_line_of_an_early_step_says_that_it_was_so_from_the_start(tmp_path: Path) -> None:
    log = "starting\nLoss became infinite or NaN at iteration=3!\n"
    assert asked(tmp_path, train_log=log).kind == "from_start"


@pytest.mark.parametrize(("climb", "since"), [(100, "the loss rose from step 301 on: "), (0, "")])
def test_a_loss_that_climbed_to_nan_is_told_with_the_step_from_which_it_rose(climb: int, since: str) -> None:
    chance = random.Random(7)
    level = [(2 + 2 * 0.5 ** (at / 40)) * chance.uniform(0.98, 1.02) for at in range(300)]
    last = [2 * 1.03 ** (at / 4) for at in range(climb)] if climb else [2.0, 4.0, 9.0]
    losses = [f"{value:.4f}" for value in level + last] + ["nan"] * 20
    log = "".join(f"step {step} loss {loss} lr 3.0e-04\n" for step, loss in enumerate(losses))
    report = pipeline.report_of(pipeline.ingest_bytes("train.log", log.encode()))
    [rise] = [f for f in report.findings if f.rule == "NAN002"]
    assert rise.because.partition("the loss rose from step 301 on: ")[1] == since
