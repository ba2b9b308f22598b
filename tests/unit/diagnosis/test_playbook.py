"""A playbook is walked over what a run recorded: done, missing with its recipe, or next."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from forensics.knowledge.causes import causes, filled
from forensics.knowledge.playbooks import playbooks
from forensics.knowledge.recordings import Recipe, recordings
from forensics.knowledge.settings import settings
from forensics.model import Outcome, Shape, Verdict
from forensics.pipeline import triage


def nan_run(folder: Path, extra: str = "", **files: str) -> Verdict:
    """The verdict of a run whose loss becomes NaN at step 60, with `extra` behind each loss."""
    lines = [f"step {step} loss {4 - step / 100:.3f}{extra}" for step in range(1, 60)]
    bad = [f"step {step} loss nan{extra}" for step in range(60, 70)]
    (folder / "train.log").write_text("\n".join([*lines, *bad]) + "\n")
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return triage(folder).verdict


def state(verdict: Verdict, check: str) -> str:
    return next(one.state for one in verdict.playbook if one.check == check)


def test_a_signal_that_is_there_is_a_check_done_with_its_file_and_steps(tmp_path: Path) -> None:
    check = nan_run(tmp_path).playbook[0]
    assert (check.check, check.state, check.evidence) == ("nan.first_step", "done", "train.log, steps 1 to 69")


def test_a_signal_that_is_not_there_is_missing_and_told_with_its_recipe(tmp_path: Path) -> None:
    verdict = nan_run(tmp_path)
    assert state(verdict, "nan.grad_norm") == "missing"
    gap = next(one for one in verdict.missing if one.signal == "grad_norm")
    assert gap.how_to_record.startswith("Log the value that clip_grad_norm_ returns")
    assert state(nan_run(tmp_path, " grad_norm 1.25"), "nan.grad_norm") == "done"


def test_a_setting_decides_its_check_with_value_and_place(tmp_path: Path) -> None:
    assert state(nan_run(tmp_path), "nan.clip") == "missing"
    assert "settings" in {gap.signal for gap in nan_run(tmp_path).missing}
    verdict = nan_run(tmp_path, config_json=json.dumps({"max_grad_norm": 0.5, "lr": 1e-4}, indent=1))
    check = next(one for one in verdict.playbook if one.check == "nan.clip")
    assert (check.state, check.evidence) == ("done", "max_grad_norm = 0.5 (config.json:2)")


def test_a_setting_that_no_file_states_is_missing_without_a_recipe(tmp_path: Path) -> None:
    verdict = nan_run(tmp_path, config_json=json.dumps({"lr": 1e-4}))
    assert state(verdict, "nan.clip") == "missing"
    assert "settings" not in {gap.signal for gap in verdict.missing}


def test_an_experiment_is_next_and_names_the_step(tmp_path: Path) -> None:
    check = next(one for one in nan_run(tmp_path).playbook if one.check == "nan.batch")
    assert check.state == "next"
    assert check.text.startswith("Look at the batch of step 60: ")


def test_a_run_of_one_process_is_not_asked_for_a_log_of_each_rank(tmp_path: Path) -> None:
    assert "nan.rank" not in {check.check for check in nan_run(tmp_path).playbook}
    for rank in range(2):
        (tmp_path / f"rank_{rank}.log").write_text((tmp_path / "train.log").read_text())
    (tmp_path / "train.log").unlink()
    assert state(triage(tmp_path).verdict, "nan.rank") == "done"


def test_a_check_is_asked_of_causes_of_its_nature_only(tmp_path: Path) -> None:
    head = [f"step {step} loss {4 - step / 100:.3f}" for step in range(1, 60)]
    for words, asked in (("KeyError: 'labels'", False), ("Segmentation fault (core dumped)", True)):
        trace = ["Traceback (most recent call last):", '  File "t.py", line 3, in f'] if "Key" in words else []
        (tmp_path / "train.log").write_text("\n".join([*head, *trace, words]) + "\n")
        assert ("crash.host" in {check.check for check in triage(tmp_path).verdict.playbook}) is asked


def test_a_command_names_the_run_as_a_shell_takes_it(tmp_path: Path) -> None:
    folder = tmp_path / "a run; rm -rf x"
    folder.mkdir()
    command = nan_run(folder).playbook[0].command
    assert command is not None
    assert shlex.split(command) == ["forensics", "nan-origin", str(folder)]


def test_a_text_of_a_playbook_asks_for_nothing_that_may_be_unknown() -> None:
    assert [row.check for row in playbooks() if filled(row.text, {}) is None] == []


def test_a_finished_run_that_printed_too_little_is_neither_started_again_nor_asked_how_it_ended(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text("step,loss\n1,4.0\n2,3.9\n")
    cut = triage(tmp_path).verdict
    (tmp_path / "train.log").write_text("training finished\n")
    finished = triage(tmp_path).verdict
    assert cut.outcome is finished.outcome is Outcome.CANNOT_SAY
    assert [state(verdict, "none.end") for verdict in (cut, finished)] == ["missing", "done"]
    assert (cut.restart is None, finished.restart is None) == (False, True)


def test_results_of_evaluations_alone_ask_for_a_baseline_and_not_for_a_loss(tmp_path: Path) -> None:
    scores = {"results": {"gsm8k": {"exact_match,none": 0.41, "exact_match_stderr,none": 0.02}}, "configs": {}}
    (tmp_path / "results.json").write_text(json.dumps(scores))
    verdict = triage(tmp_path).verdict
    assert [check.check for check in verdict.playbook] == ["none.compare"]
    assert (verdict.outcome, verdict.restart, verdict.missing) == (Outcome.CANNOT_SAY, None, ())
    assert "baseline" in verdict.headline


@pytest.mark.parametrize(
    ("logged", "missing"),
    [
        ("", ["throughput", "grad_norm", "lr", "memory", "eval_loss"]),
        (" lr 1e-4 gnorm 0.8 tok/s 51200 gpu/peak_gb 41.2 val_loss 3.1", []),
    ],
)
def test_a_healthy_run_is_told_which_free_signals_it_lacks(tmp_path: Path, logged: str, missing: list[str]) -> None:
    lines = [f"step {step} loss {4 - step / 100:.3f}{logged}" for step in range(1, 60)]
    (tmp_path / "train.log").write_text("\n".join([*lines, "Training complete."]) + "\n")
    verdict = triage(tmp_path).verdict
    assert verdict.outcome is Outcome.HEALTHY
    assert [gap.signal for gap in verdict.missing] == missing


def test_what_was_seen_and_not_seen_is_told_by_signal(tmp_path: Path) -> None:
    nan_run(tmp_path, " lr 1e-4 grad_norm 1.25")
    coverage = triage(tmp_path).coverage
    assert {(one.signal, one.first, one.last, one.records) for one in coverage.signals} == {
        ("loss", 1, 69, 69), ("lr", 1, 69, 69), ("grad_norm", 1, 69, 69)
    }  # fmt: skip
    assert {"time of a step", "profiler trace", "log of the GPUs"} <= set(coverage.absent)
    assert "training loss" not in coverage.absent


@pytest.mark.parametrize("recipe", [one for row in recordings().values() for one in row.record])
def test_a_recipe_asks_for_nothing_that_may_be_unknown(recipe: Recipe) -> None:
    assert recipe.words(None)
    assert recipe.words(12)
    assert all("{" in part for part in re.findall(r"\[[^\]]*\]", recipe.text)), "brackets are optional parts"


def test_the_first_recipe_for_the_trainer_or_the_backend_is_told() -> None:
    profiler = recordings()["trace"].record
    first = next(one for one in profiler if one.fits(frozenset({"torchtitan"}), frozenset({"cuda"})))
    assert first.command.startswith("--profiling.enable_profiling")
    assert not profiler[-1].trainer
    gpus = recordings()["gpu_log"].record
    assert [one.command.split()[0] for one in gpus if one.fits(frozenset(), frozenset({"rocm"}))] == ["rocm-smi"]


def test_every_shape_has_a_playbook_of_known_signals_and_settings() -> None:
    assert {row.shape for row in playbooks()} == {*(shape.value for shape in Shape), "none", "healthy"}
    assert {s for row in playbooks() for s in (*row.signals, *row.beside)} <= set(recordings())
    assert {s for row in playbooks() for s in row.settings} <= {one.name for one in settings()}
    assert {cause for row in playbooks() for cause in (*row.of, *row.apart)} <= set(causes())
