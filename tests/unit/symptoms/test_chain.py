"""From symptom to what to do: each shape is walked from its signal to the fix, and what is missing is asked for."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from forensics.model import Report
from tests.unit.symptoms.kit import report, told, written


def lines(count: int, of: str, bad: int | None = None) -> str:
    """So many steps in the words of `of`, with `{loss}`, `{norm}` and `{step}`; the loss is NaN from `bad` on."""
    rows: list[str] = []
    for step in range(1, count + 1):
        rise = 1.0 if bad is None or step < bad - 4 else 6.0 ** (step - bad + 5)
        loss = "nan" if bad is not None and step >= bad else f"{2 + 3 * math.exp(-step / 40):.4f}"
        norm = "nan" if bad is not None and step >= bad else f"{(1 + 0.05 * math.sin(step)) * rise:.3f}"
        rows.append(of.format(step=step, loss=loss, norm=norm))
    return "\n".join(rows) + "\n"


def test_a_nan_is_walked_to_its_norm_its_checkpoint_and_a_restart_with_a_lower_rate(tmp_path: Path) -> None:
    log = lines(200, "step {step} loss {loss} grad_norm {norm} lr 3.0e-04", bad=180)
    log = log.replace("step 151 loss", "saved checkpoint to checkpoints/step_150\nstep 151 loss")
    config = json.dumps({"max_grad_norm": 1.0, "learning_rate": 3e-4, "bf16": True}, indent=1)
    page = told(written(tmp_path, {"train.log": log, "config.json": config}))
    assert page.startswith("FAILED nan")
    assert "gradient norm rose" in page
    assert "Lower the peak learning rate to a half" in page
    assert "(now learning_rate = 0.0003, config.json:3)" in page
    assert "from the checkpoint of step 150, checkpoints/step_150" in page


def test_a_slowdown_is_walked_from_its_step_to_a_trace(tmp_path: Path) -> None:
    rows = [{"step": s, "loss": 3 - s / 200, "step_time": 0.512 if s < 90 else 1.024} for s in range(1, 181)]
    page = told(written(tmp_path, {"metrics.jsonl": "\n".join(map(json.dumps, rows)) + "\n"}))
    assert "slowdown" in page.split()[:3]
    assert "from step 90" in page
    assert "trace" in page


def test_a_run_without_a_profile_is_told_how_its_trainer_takes_one(tmp_path: Path) -> None:
    of = "[step {step}] loss={loss} | grad_norm={norm} | lr=3.00e-04 | step_time={{t}}s"
    log = lines(120, of).replace("{t}", "0.50", 60).replace("{t}", "1.05")
    verdict = report(written(tmp_path, {"train.log": log})).verdict
    gap = next(gap for gap in verdict.missing if gap.signal == "trace")
    assert "in the section profiling: enable = true, start_step = 100" in gap.how_to_record


def _judged_beside_a_good_run(tmp_path: Path, rate: str = "0.001") -> Report:
    for name, score, lr in (("good", 0.62, "0.001"), ("bad", 0.41, rate)):
        result = {
            "results": {"hellaswag": {"alias": "hellaswag", "acc,none": score, "acc_stderr,none": 0.005}},
            "n-samples": {"hellaswag": {"original": 10042, "effective": 10042}},
            "config": {"model": "hf"},
        }
        written(tmp_path / name, {"train.log": lines(100, "step {step} loss {loss}") + "Training complete\n"})
        written(tmp_path / name, {"results_2026-01-01T00-00-00.json": json.dumps(result)})
        written(tmp_path / name, {"config.yaml": f"learning_rate: {lr}\nmax_steps: 100\n"})
    from forensics.api import triage  # noqa: PLC0415 - the option of a good run is the API's

    return triage(tmp_path / "bad", baseline=[tmp_path / "good"])


def test_scores_below_a_good_run_ask_for_the_baseline_at_the_same_step(tmp_path: Path) -> None:
    verdict = _judged_beside_a_good_run(tmp_path).verdict
    assert verdict.shape is not None
    assert verdict.shape.value == "bad_eval"
    checks = {check.check: check for check in verdict.playbook}
    assert checks["bad_eval.baseline"].state == "next"
    assert "checkpoint of the same step" in checks["bad_eval.baseline"].text


@pytest.mark.parametrize(("rate", "asks"), [("0.0001", True), ("0.001", False)])
def test_a_setting_that_differs_is_proven_by_the_good_checkpoint(tmp_path: Path, rate: str, *, asks: bool) -> None:
    texts = [action.text for action in _judged_beside_a_good_run(tmp_path, rate).verdict.actions]
    assert any("Evaluate the good run's checkpoint of the same step" in text for text in texts) is asks


def test_a_log_with_a_loss_alone_names_each_signal_that_it_lacks(tmp_path: Path) -> None:
    found = report(written(tmp_path, {"train.log": lines(60, "step {step} loss {loss}", bad=50)}))
    assert {"gradient norm", "learning rate", "time of a step", "device memory of each step"} <= {
        *found.coverage.absent
    }
    assert {one.signal for one in found.coverage.signals} == {"loss"}
    assert {gap.signal for gap in found.verdict.missing} >= {"grad_norm", "lr", "settings"}


def test_a_log_with_all_signals_lacks_none_of_them(tmp_path: Path) -> None:
    of = "step {step} loss {loss} grad_norm {norm} lr 3.0e-04 step_time 0.5 mem_allocated_gib 40.5"
    config = json.dumps({"max_grad_norm": 1.0, "dtype": "bf16"})
    verdict = report(written(tmp_path, {"train.log": lines(60, of, bad=50), "config.json": config})).verdict
    assert verdict.missing == ()


def test_what_was_printed_only_and_kept_nowhere_is_to_be_kept_in_a_file(tmp_path: Path) -> None:
    page = told(written(tmp_path, {"out.txt": "starting\nall is well\n"}))
    assert page.startswith("CANNOT SAY")
    assert "python train.py 2>&1 | tee train.log" in page
