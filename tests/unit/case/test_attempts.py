"""Attempts: one process after another in one place, told from every store; the last one is judged."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from forensics import pipeline
from forensics.case.processes.attempts import Attempts, attempts
from forensics.case.processes.lives import boundaries
from forensics.case.processes.starts import starts
from forensics.model import Outcome, Report, Shape

HEAD = ("loading the tokenizer from disk", "building the model of 12 layers")
ERROR = ("Traceback (most recent call last):", '  File "train.py", line 3, in <module>', "KeyError: 'rope'")
PREEMPTED = "slurmstepd: error: *** JOB 48 ON node07 CANCELLED AT 2026-11-22T18:56:37 DUE TO PREEMPTION ***"
DONE = "training finished"


def steps(first: int, last: int, *, loss: float = 3.0, slope: float = -0.01, lr: float = 0.001) -> list[str]:
    """Records of a loss that falls over the steps, with a small ripple."""
    return [f"step {n} | loss: {loss + slope * n + 0.01 * (n % 3):.4f} | lr: {lr:.2e}" for n in range(first, last + 1)]


def place_of(root: Path, **files: Iterable[str]) -> Path:
    for name, lines in files.items():
        (root / name.replace("_", ".")).write_text("\n".join(lines) + "\n")
    return root


def judged(place: Path) -> tuple[Attempts, Report]:
    run = pipeline.ingest_run(place)
    return attempts(run), pipeline.report_of(run)


def ids(report: Report) -> set[str]:
    return {finding.rule for finding in report.findings}


def test_one_process_is_one_attempt(tmp_path: Path) -> None:
    tried, _ = judged(place_of(tmp_path, train_log=[*HEAD, *steps(1, 60), DONE]))
    assert [one.number for one in tried.every] == [0]


@pytest.mark.parametrize(
    "line",
    [
        "resumed from checkpoints/step_50 at step 50",
        "=> Resuming from checkpoint out/ckpt-50.pt",
        "Restored all states from the checkpoint at /data/run/ckpt/50",
        "continuing training from step 50",
    ],
)
def test_a_resume_line_of_any_wording_begins_an_attempt_whose_steps_only_rise(tmp_path: Path, line: str) -> None:
    tried, _ = judged(place_of(tmp_path, train_log=[*steps(1, 50), line, *steps(51, 90), DONE]))
    assert [(one.first, one.last) for one in tried.every] == [(1, 50), (51, 90)]
    assert tried.judged.number == 1


@pytest.mark.parametrize(
    "line",
    [
        "Loading best model from out/checkpoint-40.pt for the evaluation",
        "no checkpoint found, nothing to resume",
        "auto_resume: enabled",
        "loading the tokenizer from disk",
    ],
)
def test_a_line_that_only_sounds_like_a_start_begins_none(tmp_path: Path, line: str) -> None:
    tried, _ = judged(place_of(tmp_path, train_log=[*HEAD, *steps(1, 50), line, *steps(51, 90), DONE]))
    assert len(tried.every) == 1


def test_the_head_of_a_log_that_stands_in_it_again_begins_an_attempt(tmp_path: Path) -> None:
    tried, _ = judged(place_of(tmp_path, train_log=[*HEAD, *steps(1, 50), *HEAD, *steps(51, 90), DONE]))
    assert [(one.first, one.last) for one in tried.every] == [(1, 50), (51, 90)]


def test_a_line_that_the_head_holds_twice_begins_no_attempt_behind_an_error(tmp_path: Path) -> None:
    twice = ["files already downloaded and verified"] * 2
    tried, _ = judged(place_of(tmp_path, train_log=[HEAD[0], *twice, *steps(1, 50), *ERROR, *twice, DONE]))
    assert len(tried.every) == 1


def test_a_line_that_the_head_holds_once_begins_an_attempt_behind_an_error(tmp_path: Path) -> None:
    tried, _ = judged(place_of(tmp_path, train_log=[*HEAD, *steps(1, 50), *ERROR, HEAD[1], *steps(1, 60)]))
    assert len(tried.every) == 2


def test_a_state_that_is_loaded_after_an_error_begins_an_attempt(tmp_path: Path) -> None:
    lines = [*steps(1, 50), *ERROR, "loading checkpoints/last.pt", *steps(51, 90), DONE]
    tried, report = judged(place_of(tmp_path, train_log=lines))
    assert len(tried.every) == 2
    assert report.verdict.outcome is Outcome.HEALTHY


@pytest.mark.parametrize(
    ("words", "count"),
    [("RuntimeError: Error(s) in loading state_dict for GPT:", 1), ("loading checkpoints/last.pt", 2)],
)
def test_an_error_that_tells_of_loading_begins_no_attempt(tmp_path: Path, words: str, count: int) -> None:
    raised = [f"[rank{r}]: {line}" for line in ERROR[:2] for r in (0, 1)]
    lines = [*raised, f"[rank0]: {ERROR[2]}", f"[rank1]: {words}"]
    assert len(judged(place_of(tmp_path, train_log=[*HEAD, *lines]))[0].every) == count


def test_the_last_of_appended_attempts_is_judged_and_the_earlier_ones_are_told(tmp_path: Path) -> None:
    resumed = "resumed from checkpoints/step_40 at step 40"
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    lines = [*steps(1, 50), *ERROR, resumed, *steps(41, 70), *ERROR[:2], oom]
    _, report = judged(place_of(tmp_path, train_log=lines))
    assert report.verdict.shape is Shape.OOM
    [told] = [finding for finding in report.findings if finding.rule == "CRH006"]
    assert "KeyError: 'rope'" in told.title


def test_an_attempt_that_only_began_leaves_the_verdict_to_the_one_before(tmp_path: Path) -> None:
    lines = [*steps(1, 50), *ERROR, "resumed from checkpoints/step_40 at step 40", *steps(41, 42)]
    tried, report = judged(place_of(tmp_path, train_log=lines))
    assert tried.judged.number == 0
    assert report.verdict.shape is Shape.CRASH


def test_a_preempted_run_that_is_requeued_and_ends_is_not_stopped(tmp_path: Path) -> None:
    resumed = "resumed from checkpoints/step_50 at step 50"
    _, report = judged(place_of(tmp_path, train_log=[*steps(1, 50), PREEMPTED, resumed, *steps(51, 90), DONE]))
    assert report.verdict.outcome is Outcome.HEALTHY


def test_a_preempted_run_that_nobody_went_on_with_is_stopped(tmp_path: Path) -> None:
    _, report = judged(place_of(tmp_path, train_log=[*steps(1, 50), PREEMPTED]))
    assert report.verdict.shape is Shape.STOPPED


def test_a_log_that_says_nothing_is_cut_at_the_step_that_another_one_names(tmp_path: Path) -> None:
    out = ["training for 90 steps", "training for 90 steps", "resumed from checkpoints/step_50 at step 50", DONE]
    err = [*steps(1, 50), PREEMPTED, *steps(51, 90)]
    tried, report = judged(place_of(tmp_path, slurm_out=out, slurm_err=err))
    assert [(one.first, one.last) for one in tried.every] == [(1, 50), (51, 90)]
    assert tried.is_over("slurm.err", line=51)
    assert not tried.is_over("slurm.err", line=52)
    assert report.verdict.outcome is Outcome.HEALTHY


def test_an_earlier_attempt_ended_where_its_own_store_ends(tmp_path: Path) -> None:
    out = ["training for 90 steps", PREEMPTED, "resumed from checkpoints/step_50 at step 50", DONE]
    place = place_of(tmp_path, slurm_out=out)
    for folder, first, last in (("v0", 1, 50), ("v1", 51, 90)):
        rows = [
            json.dumps({"step": step, "loss": 3 - step / 90, "timestamp": 1.8e9 + step})
            for step in range(first, last + 1)
        ]
        (place / folder).mkdir()
        (place / folder / "metrics.jsonl").write_text("\n".join(rows) + "\n")
    _, report = judged(place)
    [told] = [finding for finding in report.findings if finding.rule == "CRH006"]
    assert told.onset.step == 50


def test_attempts_that_die_at_one_step_from_one_checkpoint_are_a_loop(tmp_path: Path) -> None:
    resumed = "resumed from checkpoints/step_200 at step 200"
    again = [resumed, *steps(201, 220), *ERROR]
    tried, report = judged(place_of(tmp_path, train_log=[*steps(1, 220), *ERROR, *(again * 4)]))
    assert len(tried.loop) == 5
    [told] = [finding for finding in report.findings if finding.rule == "CRH006"]
    assert "5 attempts died at step 220 from the checkpoint of step 200" in told.title


def test_attempts_that_get_further_each_time_are_no_loop(tmp_path: Path) -> None:
    lines = [*steps(1, 50), *ERROR]
    for first in (51, 101):
        lines += [f"resumed from checkpoints/step_{first - 1} at step {first - 1}", *steps(first, first + 49), *ERROR]
    tried, _ = judged(place_of(tmp_path, train_log=lines))
    assert len(tried.every) == 3
    assert tried.loop == ()


def test_a_chain_of_three_attempts_runs_forward(tmp_path: Path) -> None:
    lines = [*steps(1, 50)]
    for first in (51, 101):
        lines += [f"resumed from checkpoints/step_{first - 1} at step {first - 1}", *steps(first, first + 49)]
    run = pipeline.ingest_run(place_of(tmp_path, train_log=lines))
    assert [(edge.before.last, edge.after.first) for edge in boundaries(run)] == [(50, 51), (100, 101)]


def test_starts_know_what_was_loaded(tmp_path: Path) -> None:
    resumed = "resumed from checkpoints/step_50 at step 50"
    run = pipeline.ingest_run(place_of(tmp_path, train_log=[*steps(1, 50), resumed, *steps(51, 90)]))
    [start] = starts(run)["train.log"]
    assert (start.line, start.step, start.quote, start.resumed) == (51, 50, resumed, True)


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("Resuming from step 50", 50),
        ("resumed from checkpoint out/step_50.pt", 50),
        ("=> Resuming from checkpoint out/ckpt-50.pt", 50),
        ("Resuming from checkpoint at step 1,250", 1250),
        ("Resuming training from epoch 3, step 1200", 1200),
        ("Resuming training from epoch 3", None),
        ("continuing from runs/7/ckpt/last.pt", None),
    ],
)
def test_a_resume_line_tells_the_step_that_it_names(tmp_path: Path, line: str, step: int | None) -> None:
    run = pipeline.ingest_run(place_of(tmp_path, train_log=[*steps(1, 50), line, *steps(51, 90)]))
    assert [start.step for start in starts(run)["train.log"]] == [step]


def with_rates(rates: Sequence[float], first: int = 1) -> list[str]:
    return [f"step {first + i} | loss: {2.0 + 0.01 * (i % 3):.4f} | lr: {rate:.3e}" for i, rate in enumerate(rates)]


def test_a_schedule_that_is_gone_through_again_is_found_without_replayed_steps(tmp_path: Path) -> None:
    rates = [min(n / 10, 1.0) * 1e-3 * (1 - n / 200) for n in range(1, 101)]
    lines = [*with_rates(rates[:50]), "resumed from checkpoints/step_50 at step 50", *with_rates(rates[:40], 51)]
    _, report = judged(place_of(tmp_path, train_log=lines))
    assert [f.cause for f in report.findings if f.rule == "RSM003"] == ["warmup_again"]


def test_a_schedule_that_goes_on_is_not_gone_through_again(tmp_path: Path) -> None:
    rates = [min(n / 10, 1.0) * 1e-3 * (1 - n / 200) for n in range(1, 101)]
    lines = [*with_rates(rates[:50]), "resumed from checkpoints/step_50 at step 50", *with_rates(rates[50:], 51)]
    _, report = judged(place_of(tmp_path, train_log=lines))
    assert "RSM003" not in ids(report)


def test_lost_weights_behind_a_step_that_goes_on_are_an_error(tmp_path: Path) -> None:
    resumed = "resumed from checkpoints/step_50 at step 50"
    again = [line.replace(f"step {n} ", f"step {n + 50} ", 1) for n, line in enumerate(steps(1, 60, slope=-0.04), 1)]
    _, report = judged(place_of(tmp_path, train_log=[*steps(1, 50, slope=-0.04), resumed, *again, DONE]))
    assert (report.verdict.shape, report.verdict.cause) == (Shape.LEARNING, "restarted_from_scratch")
    assert report.verdict.onset.step == 51


def test_a_clean_resume_loses_nothing(tmp_path: Path) -> None:
    resumed = "resumed from checkpoints/step_50 at step 50"
    _, report = judged(place_of(tmp_path, train_log=[*steps(1, 50), resumed, *steps(51, 110), DONE]))
    assert not ids(report) & {"RSM001", "RSM002", "RSM003", "RSM004", "RSM005"}


def test_steps_that_count_anew_while_the_loss_goes_on_are_a_lost_counter(tmp_path: Path) -> None:
    resumed = "resumed from checkpoints/step_50 at step 50"
    again = [line.replace(f"step {n + 50} ", f"step {n} ", 1) for n, line in enumerate(steps(51, 110, slope=-0.02), 1)]
    _, report = judged(place_of(tmp_path, train_log=[*steps(1, 50, slope=-0.02), resumed, *again, DONE]))
    assert [f.cause for f in report.findings if f.rule == "RSM004"] == ["steps_count_anew"]


def test_a_stop_in_a_log_that_then_says_it_finished_is_of_an_earlier_attempt(tmp_path: Path) -> None:
    out = ["received preemption notice, checkpoint saved, leaving", DONE]
    err = [*HEAD, *steps(1, 50), *HEAD, "resumed from checkpoints/step_50 at step 50", *steps(51, 90), DONE]
    _, report = judged(place_of(tmp_path, slurm_out=out, slurm_err=err))
    assert report.verdict.outcome is Outcome.HEALTHY


def test_a_graceful_stop_of_the_only_attempt_is_a_stop_whatever_is_printed_after_it(tmp_path: Path) -> None:
    out = ["received preemption notice, checkpoint saved, leaving", DONE]
    _, report = judged(place_of(tmp_path, slurm_out=out, slurm_err=[*HEAD, *steps(1, 50)]))
    assert report.verdict.shape is Shape.STOPPED


def test_a_loss_that_is_lost_again_by_the_last_attempt_is_not_forgiven_with_the_first(tmp_path: Path) -> None:
    again = [*steps(1, 40), *(f"step {n} | loss: nan | lr: 1.00e-03" for n in range(41, 61))]
    resumed = "resumed from checkpoints/step_20 at step 20"
    tried, report = judged(place_of(tmp_path, train_log=[*again, resumed, *again[20:]]))
    assert tried.judged.number == 1
    assert (report.verdict.outcome, report.verdict.shape) == (Outcome.FAILED, Shape.NAN)


def test_a_loss_that_is_lost_by_an_earlier_attempt_only_is_told_and_not_judged(tmp_path: Path) -> None:
    first = [*steps(1, 40), *(f"step {n} | loss: nan | lr: 1.00e-03" for n in range(41, 61))]
    resumed = "resumed from checkpoints/step_20 at step 20"
    _, report = judged(place_of(tmp_path, train_log=[*first, resumed, *steps(21, 90), DONE]))
    assert report.verdict.outcome is Outcome.HEALTHY
    assert any(finding.shape is Shape.NAN for finding in report.findings)


@pytest.mark.parametrize("resumed", ["resumed from checkpoint out/step_20.pt", "Resuming from step 20"])
def test_a_log_without_times_that_resumes_from_a_step_of_another_is_the_later_attempt(
    tmp_path: Path, resumed: str
) -> None:
    first = [*steps(1, 40), *(f"step {n} | loss: nan | lr: 1.00e-03" for n in range(41, 61))]
    tried, report = judged(place_of(tmp_path, a_log=first, b_log=[resumed, *steps(21, 90), DONE]))
    assert [(one.first, one.last) for one in tried.every] == [(1, 60), (21, 90)]
    assert report.verdict.outcome is Outcome.HEALTHY


def test_a_log_without_times_that_names_no_step_is_no_later_attempt_of_another(tmp_path: Path) -> None:
    first = [*steps(1, 40), *(f"step {n} | loss: nan | lr: 1.00e-03" for n in range(41, 61))]
    tried, _ = judged(place_of(tmp_path, a_log=first, b_log=[*steps(21, 90), DONE]))
    assert len(tried.every) == 1


def test_a_traceback_at_the_head_that_another_one_follows_is_no_new_process(tmp_path: Path) -> None:
    other = [ERROR[0], '  File "launch.py", line 9, in <module>', "ChildFailedError: train.py FAILED"]
    tried, report = judged(place_of(tmp_path, train_log=[*ERROR, "sending SIGTERM to 27019", *other]))
    assert len(tried.every) == 1
    assert "KeyError: 'rope'" in report.verdict.headline


CAUGHT = ("Traceback (most recent call last):", '  File "cache.py", line 3, in load_cache', "KeyError: 'rope'")


def counted(first: int, last: int, plan: int) -> list[str]:
    return [f"step {n}/{plan} | loss: {3 - n / 50 + 0.01 * (n % 3):.4f} | lr: 1.00e-03" for n in range(first, last + 1)]


def test_an_error_that_the_program_printed_itself_did_not_end_a_run_that_reached_its_plan(tmp_path: Path) -> None:
    _, report = judged(place_of(tmp_path, slurm_out=counted(1, 90, 90), slurm_err=CAUGHT))
    assert report.verdict.outcome is Outcome.HEALTHY


def test_an_error_that_nobody_caught_or_before_the_end_of_the_plan_is_a_crash(tmp_path: Path) -> None:
    for name, last, error in (("uncaught", 90, ERROR), ("early", 50, CAUGHT)):
        (tmp_path / name).mkdir()
        _, report = judged(place_of(tmp_path / name, slurm_out=counted(1, last, 90), slurm_err=error))
        assert report.verdict.shape is Shape.CRASH, name


LOADED = "Loading model from out/base with step 90"


def test_steps_that_begin_anew_after_the_end_of_a_plan_are_the_next_stage(tmp_path: Path) -> None:
    lines = [*counted(0, 89, 90), LOADED, *counted(1, 60, 60)]
    tried, report = judged(place_of(tmp_path, train_log=lines))
    assert len(tried.every) == 2
    assert not ids(report) & {"RSM001", "RSM002", "RSM003", "RSM004", "RSM005"}


def test_steps_that_begin_anew_before_the_end_of_a_plan_are_lost(tmp_path: Path) -> None:
    again = [line.replace(f"step {n + 50}/", f"step {n}/", 1) for n, line in enumerate(counted(51, 110, 200), 1)]
    _, report = judged(
        place_of(tmp_path, train_log=[*counted(0, 50, 200), "resumed from step 50 of out/last.pt", *again])
    )
    assert "RSM004" in ids(report)


@pytest.mark.parametrize(("again", "found"), [(0.0, True), (0.02, False)])
def test_of_a_short_attempt_the_same_losses_again_are_a_restart_from_scratch(
    tmp_path: Path, again: float, *, found: bool
) -> None:
    saved = "saved checkpoint out/step_6 at step 6"
    first, second = steps(1, 8, slope=-0.2), steps(1, 40, loss=3.0 + again, slope=-0.2)
    _, report = judged(place_of(tmp_path, train_log=[*HEAD, *first[:6], saved, *first[6:], *HEAD, *second]))
    assert ("RSM002" in ids(report)) is found


@pytest.mark.parametrize(("end", "outcome"), [(DONE, Outcome.HEALTHY), ("", Outcome.FAILED)])
def test_a_stop_of_which_nothing_tells_the_attempt_is_not_that_of_one_that_says_it_finished(
    tmp_path: Path, end: str, outcome: Outcome
) -> None:
    resumed = "resumed from checkpoints/step_50 at step 50"
    logs = place_of(tmp_path, job_err=[*steps(1, 50), resumed, *steps(51, 90), end], job_out=[PREEMPTED])
    tried, report = judged(logs)
    assert [one.number for one in tried.every] == [0, 1]
    assert report.verdict.outcome is outcome


def one_counter(first: list[str], second: list[str]) -> list[str]:
    """The same records in a file that no line says anything in."""
    return ["step,loss", *(f"{line.split()[1]},{line.split()[4]}" for line in [*first, *second])]


LEFT = ["Seed set to 1", "received preemption notice, checkpoint saved, leaving"]
BACK = ["resumed from checkpoints/step_50 at step 50"]


def test_weights_that_are_lost_show_in_a_file_that_only_goes_on_counting(tmp_path: Path) -> None:
    again = [line.replace(f"step {n} ", f"step {n + 50} ", 1) for n, line in enumerate(steps(1, 60, slope=-0.04), 1)]
    place = place_of(
        tmp_path, train_log=[*LEFT, *BACK, DONE], metrics_csv=one_counter(steps(1, 50, slope=-0.04), again)
    )
    _, report = judged(place)
    assert (report.verdict.cause, report.verdict.onset.step) == ("restarted_from_scratch", 51)


def test_a_clean_resume_shows_nothing_in_a_file_that_only_goes_on_counting(tmp_path: Path) -> None:
    place = place_of(tmp_path, train_log=[*LEFT, *BACK, DONE], metrics_csv=one_counter(steps(1, 50), steps(51, 110)))
    _, report = judged(place)
    assert (report.verdict.outcome, ids(report) & {"RSM001", "RSM002", "RSM003", "RSM004"}) == (Outcome.HEALTHY, set())


def test_steps_that_go_back_at_a_resume_that_the_other_stream_tells_are_lost(tmp_path: Path) -> None:
    again = [line.replace(f"step {n + 50} ", f"step {n} ", 1) for n, line in enumerate(steps(51, 140, slope=-0.02), 1)]
    out = ["training for 150 steps", "training for 150 steps", "resumed from checkpoints/step_50 at step 50", DONE]
    _, report = judged(place_of(tmp_path, job_out=out, job_err=[*steps(1, 50, slope=-0.02), *again]))
    assert [f.cause for f in report.findings if f.rule == "RSM004"] == ["steps_count_anew"]


def test_a_plan_that_the_next_attempt_reaches_was_not_reached_by_the_first(tmp_path: Path) -> None:
    again = [line.replace(f"step {n + 50}/", f"step {n}/", 1) for n, line in enumerate(counted(51, 150, 100), 1)]
    lines = [*counted(1, 50, 100), "resumed from step 50 of out/last.pt", *again]
    _, report = judged(place_of(tmp_path, train_log=lines))
    assert "RSM004" in ids(report)


def test_a_schedule_that_starts_again_after_the_first_record_is_found(tmp_path: Path) -> None:
    rates = [min(n / 10, 1.0) * 1e-3 * (1 - n / 100) for n in range(1, 101)]
    after = [rates[50], *rates[1:40]]
    lines = [*with_rates(rates[:50]), "resumed from checkpoints/step_50 at step 50", *with_rates(after, 51)]
    _, report = judged(place_of(tmp_path, train_log=lines))
    assert [f.cause for f in report.findings if f.rule == "RSM003"] == ["warmup_again"]


def bar(first: int, last: int, *, plan: int = 100, loss: float = 3.0) -> list[str]:
    """A progress bar with a record under each second frame, as it is drawn without a terminal."""
    frames = [f"\r{n * 100 // plan:3d}%|###   | {n}/{plan} [00:{n // 2:02d}<00:50,  2.00it/s]" for n in (0, first)]
    rows = [
        f"\r{n * 100 // plan:3d}%|###   | {n}/{plan} [00:{n // 2:02d}<00:50,  2.00it/s]"
        f"\r{{'loss': {loss - n / 100:.4f}, 'epoch': {n / plan:.2f}}}"
        for n in range(first, last + 1, 2)
    ]
    return [*frames, *rows]


@pytest.mark.parametrize(
    ("first", "stop", "count"),
    [(40, PREEMPTED, 2), (40, "saved checkpoint checkpoints/step_40", 1)],
    ids=["behind a stop", "behind a save"],
)
def test_a_bar_that_begins_again_behind_a_stop_is_a_new_process(
    first: int, stop: str, count: int, tmp_path: Path
) -> None:
    lines = [*bar(2, first), stop, *bar(first + 2, 100), DONE]
    tried, _ = judged(place_of(tmp_path, train_log=lines))
    assert len(tried.every) == count


def json_lines(*messages: str) -> list[str]:
    """Lines as a logger of JSON writes them, a second apart."""
    return [
        f'{{"timestamp": "2031-03-04T10:00:{n:02d}Z", "level": "INFO", "logger": "trainer", "message": "{words}"}}'
        for n, words in enumerate(messages)
    ]


@pytest.mark.parametrize(("again", "shape"), [("training for 97 steps", Shape.CRASH), ("bye then", Shape.STOPPED)])
def test_the_head_of_a_json_log_that_stands_behind_a_stop_begins_an_attempt(
    again: str, shape: Shape, tmp_path: Path
) -> None:
    records = [f"step {n} loss {3 - n / 100:.4f}" for n in range(1, 21)]
    lines = json_lines("training for 97 steps", *records, "received preemption notice, leaving", again)
    _, report = judged(place_of(tmp_path, train_log=[*lines, *ERROR]))
    assert report.verdict.shape is shape


WARNED = "/site/transformers/training_args.py:12: FutureWarning: an option is deprecated\n  warnings.warn(\n"


def bars(first: int, last: int) -> str:
    """A bar of 90 steps, drawn at its beginning and from one step to another."""
    frames = [f" {100 * n // 90:2d}%|#   | {n}/90 [00:00<00:05, 17.00it/s]" for n in (0, *range(first, last + 1))]
    return "\r" + "\r".join(frames) + "\n"


def state(again: float) -> str:
    """The losses of two processes in one state of the trainer; that of the first 40 steps falls from 2 to 0.05."""
    first = [2.0 * 0.91**n for n in range(40)]
    second = [again * 0.95**n for n in range(50)]
    history = [{"step": n, "loss": loss} for n, loss in enumerate([*first, *second], 1)]
    return json.dumps({"global_step": 90, "max_steps": 90, "log_history": history}, indent=1)


@pytest.mark.parametrize(("again", "is_from_scratch"), [(1.95, True), (0.05, False)])
def test_a_bar_that_goes_on_says_which_step_a_process_loaded(
    tmp_path: Path, again: float, *, is_from_scratch: bool
) -> None:
    (tmp_path / "run.err").write_text(WARNED + bars(1, 40) + WARNED + bars(42, 90))
    (tmp_path / "out" / "checkpoint-40").mkdir(parents=True)
    (tmp_path / "out" / "checkpoint-40" / "model.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    (tmp_path / "out" / "trainer_state.json").write_text(state(again))
    _, report = judged(tmp_path)
    assert (report.verdict.cause == "restarted_from_scratch") is is_from_scratch
    assert not is_from_scratch or report.verdict.onset.step == 41


def test_a_bar_that_begins_anew_says_nothing_of_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "run.err").write_text(WARNED + bars(1, 40) + WARNED + bars(1, 90))
    (start,) = starts(pipeline.ingest_run(tmp_path))["run.err"]
    assert start.step is None


WARNING = (
    "/usr/lib/python3/torch/utils/data/dataloader.py:759: UserWarning: 'pin_memory' argument is set as true but no GPU",
    "  super().__init__(loader)",
)


def test_a_warning_that_comes_again_with_its_source_line_begins_no_attempt(tmp_path: Path) -> None:
    tried, _ = judged(place_of(tmp_path, train_log=[*WARNING, HEAD[0], *steps(1, 50), *WARNING, *steps(51, 90), DONE]))
    assert len(tried.every) == 1


def test_a_warning_that_comes_again_with_the_line_behind_it_begins_an_attempt(tmp_path: Path) -> None:
    head = (*WARNING, HEAD[0])
    tried, _ = judged(place_of(tmp_path, train_log=[*head, *steps(1, 50), *head, *steps(51, 90), DONE]))
    assert [(one.first, one.last) for one in tried.every] == [(1, 50), (51, 90)]


@pytest.mark.parametrize(
    ("last", "outcome"),
    [("job finished with exit code 0", Outcome.HEALTHY), ("srun: job 48 is being prolonged", Outcome.FAILED)],
)
def test_the_last_line_of_a_requeued_job_says_how_its_last_attempt_ended(
    tmp_path: Path, last: str, outcome: Outcome
) -> None:
    begun = "srun: job 48 has been allocated resources"
    place = place_of(tmp_path, train_log=steps(1, 60), slurm_out=[begun, PREEMPTED, begun, last])
    tried, report = judged(place)
    assert tried.judged.ended is (outcome is Outcome.HEALTHY)
    assert report.verdict.outcome is outcome
