"""What was caught is a note; of several runs in one file the last is judged, and what ended earlier ones is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from forensics import triage
from forensics.model import Finding, Outcome, Report, Severity, Shape
from forensics.pipeline import ingest_bytes, report_of

DONE = "Training finished."
STOP = "slurmstepd: error: *** JOB 551 ON n7 CANCELLED AT 2029-03-09T04:11:00 DUE TO TIME LIMIT ***"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB."


def steps(first: int, last: int, before: str = "") -> Iterator[str]:
    return (
        f"{before}step {s} | loss {2 + 3 / (s + 1):.4f} | grad_norm {0.7 + 0.01 * (s % 9):.3f}"
        for s in range(first, last)
    )


def raised(words: str, before: str = "") -> Sequence[str]:
    frames = ("Traceback (most recent call last):", '  File "/app/fit.py", line 31, in <module>', "    main()")
    return [before + line for line in (*frames, words)]


def judged(*parts: str | Sequence[str] | Iterator[str]) -> Report:
    lines = [line for part in parts for line in ([part] if isinstance(part, str) else part)]
    return report_of(ingest_bytes("train.log", ("\n".join(lines) + "\n").encode()))


def found(report: Report, rule: str) -> Finding:
    return next(f for f in report.findings if f.rule == rule)


@pytest.mark.parametrize("end", [DONE, ""])
@pytest.mark.parametrize("before", ["", "(Reader pid=4410) "])
def test_an_exception_after_which_training_goes_on_is_a_note(end: str, before: str) -> None:
    said = f"{before}2029-03-09 04:11:00,120 WARNING reader: leaves a record out"
    report = judged(steps(0, 40), said, raised("ValueError: record 7 is cut", before), steps(40, 300), end)
    assert report.verdict.outcome is (Outcome.HEALTHY if end else Outcome.CANNOT_SAY)
    note = found(report, "CRH005")
    assert (note.severity, note.evidence[0].locator.line) == (Severity.INFO, 45)
    assert "ValueError: record 7 is cut" in note.title


def test_equal_exceptions_are_counted() -> None:
    parts = [part for i in range(5) for part in (steps(40 * i, 40 * i + 40), raised("OSError: share 3 is away"))]
    report = judged(*parts, steps(200, 240), DONE)
    assert report.verdict.outcome is Outcome.HEALTHY
    assert found(report, "CRH005").numbers == {"exceptions": 5, "kinds": 1}


def test_records_without_a_step_show_progress_too() -> None:
    rows = [
        str({"loss": 2.5 - 0.002 * i, "grad_norm": 0.8, "learning_rate": 3e-4, "epoch": i / 100}) for i in range(90)
    ]
    report = judged(rows[:30], raised("ValueError: record 7 is cut"), rows[30:], DONE)
    assert report.verdict.outcome is Outcome.HEALTHY
    assert found(report, "CRH005").severity is Severity.INFO


@pytest.mark.parametrize(("later", "outcome"), [(300, Outcome.CANNOT_SAY), (20, Outcome.FAILED)])
def test_a_rank_that_logs_no_steps_is_outlived_by_many_steps_of_the_others(later: int, outcome: Outcome) -> None:
    parts = (steps(0, 40, "[rank0]: "), raised("ValueError: record 7 is cut", "[rank1]: "))
    assert judged(*parts, steps(40, 40 + later, "[rank0]: ")).verdict.outcome is outcome


def test_an_exception_that_ends_the_log_or_nearly_so_is_a_crash() -> None:
    for later in (0, 2):
        verdict = judged(steps(0, 40), raised("ValueError: record 7 is cut"), steps(40, 40 + later)).verdict
        assert (verdict.outcome, verdict.shape) == (Outcome.FAILED, Shape.CRASH)


def test_the_last_of_several_runs_is_judged_and_the_earlier_failure_is_told_with_its_line() -> None:
    report = judged(steps(0, 60), raised("ValueError: 7 heads"), steps(0, 90), DONE)
    assert report.verdict.outcome is Outcome.HEALTHY
    note = found(report, "CRH006")
    assert (note.severity, note.onset.step, note.evidence[0].locator.line) == (Severity.INFO, 59, 64)
    assert not [f for f in report.findings if f.rule == "CRH005"]


@pytest.mark.parametrize("last", [10, 60, 200])
def test_a_last_run_that_fails_decides_however_far_it_got(last: int) -> None:
    report = judged(steps(0, 60), raised("ValueError: 7 heads"), steps(0, last), raised("KeyError: 'labels'"))
    assert "KeyError" in report.verdict.headline
    assert "ValueError" in found(report, "CRH006").title


def test_a_last_run_that_is_stopped_decides_over_memory_that_ran_out_before() -> None:
    report = judged(steps(0, 60), raised(OOM), steps(0, 30), STOP)
    assert report.verdict.shape is Shape.STOPPED
    assert "OutOfMemoryError" in found(report, "CRH006").title


@pytest.mark.parametrize("words", ["ValueError: 7 heads", OOM])
def test_a_last_run_without_any_end_is_judged_and_the_failure_before_it_is_told(words: str) -> None:
    report = judged(steps(0, 60), raised(words), steps(0, 20))
    assert report.verdict.outcome is Outcome.CANNOT_SAY
    assert found(report, "CRH006").onset.step == 59


def test_a_last_run_without_an_end_that_got_further_has_got_over_the_failure() -> None:
    report = judged(steps(0, 60), raised(OOM), steps(0, 200))
    assert report.verdict.outcome is Outcome.CANNOT_SAY
    assert found(report, "CRH006").onset.step == 59


def test_a_run_that_fails_after_one_that_finished_is_a_failure() -> None:
    assert judged(steps(0, 60), DONE, steps(0, 30), raised("KeyError: 'labels'")).verdict.shape is Shape.CRASH


def test_each_earlier_run_is_told_once() -> None:
    parts = [part for i in range(3) for part in (steps(0, 30), raised(f"ValueError: {i} heads"))]
    note = found(judged(*parts, steps(0, 60), DONE), "CRH006")
    assert note.numbers["failures"] == 3
    assert len(note.evidence) == 3


@pytest.mark.parametrize(("after", "outcome"), [(30, Outcome.HEALTHY), (0, Outcome.FAILED)])
def test_a_worker_s_log_that_goes_on_is_cleared_by_the_driver_s_good_end(
    tmp_path: Path, after: int, outcome: Outcome
) -> None:
    worker = [*raised("ValueError: record 7 is cut"), *("reader: takes the next shard" for _ in range(after))]
    (tmp_path / "driver.log").write_text("\n".join([*steps(0, 90), DONE]) + "\n", encoding="utf-8")
    (tmp_path / "reader-17.err").write_text("\n".join(worker) + "\n", encoding="utf-8")
    assert triage(tmp_path).verdict.outcome is outcome


def logged(clock: str, words: str, pid: int | None = None) -> Sequence[str]:
    before = f"(ShardReader pid={pid}) " if pid else ""
    first, *rest = raised(words)
    stamped = f"{before}2029-03-09 {clock},500 ERROR {first}"
    return [stamped, *(before + line for line in rest), *[f"{before}takes the next shard"] * 15]


def test_a_worker_that_raises_twice_has_outlived_the_first_error() -> None:
    parts = [line for i in range(2) for line in logged(f"04:1{i}:00", "TypeError: no tuple", 771)]
    report = judged(steps(0, 2), parts, logged("04:13:00", "KeyError: 'x'", 772))
    assert report.verdict.shape is None
    assert found(report, "CRH005").numbers["exceptions"] == 3


@pytest.mark.parametrize(
    ("clocks", "cut", "crashed"),
    [
        ("04:11:00 04:12:00 04:13:00 04:14:00 04:15:00", None, False),
        ("04:11:00 04:12:00 04:13:00 04:14:00 04:15:00", -15, True),
        ("04:11:00 04:11:01 04:11:01 04:11:02 04:11:02", None, True),
    ],
    ids=["over minutes", "ends the log", "together"],
)
def test_an_error_that_is_raised_over_minutes_is_caught_each_time(
    clocks: str, cut: int | None, *, crashed: bool
) -> None:
    parts = [line for clock in clocks.split() for line in logged(clock, "TypeError: no tuple")]
    verdict = judged(steps(0, 2), parts[:cut]).verdict
    assert (verdict.shape is Shape.CRASH) is crashed


def test_a_launcher_that_tells_of_an_end_makes_equal_errors_no_caught_ones() -> None:
    clocks = ("04:11:00", "04:12:00", "04:13:00", "04:14:00", "04:15:00")
    ends = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "
    parts = [line for clock in clocks for line in (*logged(clock, "TypeError: no tuple"), ends)]
    assert judged(steps(0, 2), parts, "# next try").verdict.shape is Shape.CRASH


def diverging() -> Iterator[str]:
    return (f"step {s} | loss {2 + 0.5 * 1.15 ** max(0, s - 20):.4f}" for s in range(70))


@pytest.mark.parametrize(("end", "outcome"), [((DONE,), Outcome.HEALTHY), ((), Outcome.CANNOT_SAY)])
def test_an_earlier_run_that_diverged_does_not_decide(end: tuple[str, ...], outcome: Outcome) -> None:
    assert judged(diverging(), steps(0, 90), *end).verdict.outcome is outcome


@pytest.mark.parametrize(("lower", "outcome"), [(1.0, Outcome.HEALTHY), (0.0, Outcome.FAILED)])
def test_a_last_run_that_begins_high_is_a_new_one_where_it_goes_on_for_much_longer_and_ends_lower(
    lower: float, outcome: Outcome
) -> None:
    last = (f"step {s} | loss {500 - lower * 498 * s / 139 + s % 3 / 10:.4f}" for s in range(140))
    assert judged(diverging(), last, DONE).verdict.outcome is outcome


def test_epochs_that_count_from_the_start_are_one_run() -> None:
    def epoch(high: float) -> Iterator[str]:
        return (f"step {s} | loss {high + (0.5 * 1.15 ** max(0, s - 20)):.4f}" for s in range(70))

    report = judged(epoch(2.0), (f"step {s} | loss {500 + s % 3:.4f}" for s in range(80)), DONE)
    assert report.verdict.outcome is Outcome.FAILED


@pytest.mark.parametrize(("cut", "outcome"), [(0, Outcome.HEALTHY), (1, Outcome.CANNOT_SAY)])
def test_the_last_epoch_under_a_heading_ends_with_its_evaluation(cut: int, outcome: Outcome) -> None:
    lines = [
        line
        for e in range(1, 31)
        for line in (
            f"Epoch {e}/30:",
            f"Train - Loss: {0.1 + 2 / e:.4f} | Acc: {1 - 0.5 / e:.4f}",
            f"Val - Loss: {0.2 + 2 / e:.4f} | Acc: {0.95 - 0.5 / e:.4f}",
        )
    ]
    assert judged(lines[: len(lines) - cut]).verdict.outcome is outcome


@pytest.mark.parametrize(("first", "outcome"), [(0, Outcome.HEALTHY), (12, Outcome.FAILED)])
def test_a_loss_that_leaps_where_epochs_are_counted_anew_is_another_task_s(first: int, outcome: Outcome) -> None:
    def task(first: int, high: float, fall: float) -> Iterator[str]:
        return (
            f"epoch {first + e}, iter {k}, avg loss {high - fall * (4 * e + k) + k % 2 / 50:.4f}"
            for e in range(12)
            for k in range(4)
        )

    assert judged(task(0, 0.6, -0.01), task(first, 5.2, 0.04), DONE).verdict.outcome is outcome


@pytest.mark.parametrize(("first", "outcome"), [(0, Outcome.CANNOT_SAY), (60, Outcome.FAILED)])
def test_a_loss_that_leaps_at_the_next_layer_is_another_layer_s(first: int, outcome: Outcome) -> None:
    def layer(name: str, first: int, high: float) -> Iterator[str]:
        return (f"Pre-training layer {name}, epoch {first + e}, cost {high * (1 - e / 300):.6f}" for e in range(60))

    assert judged(layer("1", 0, 0.0033), layer("top", first, 0.29), DONE).verdict.outcome is outcome


@pytest.mark.parametrize(
    "words", ["End training....", "训练完成!", "Treinamento concluído com sucesso", "学習が完了しました", "학습 완료"]
)
def test_other_words_for_the_end_are_success(words: str) -> None:
    assert "then " in judged(steps(0, 40), words).verdict.headline


def test_the_end_of_an_epoch_is_no_end_of_training() -> None:
    said = "第 3 轮训练完成", "Epoch 3 训练完成", "训练完成率: 30%", "训练完成后将保存模型"
    assert "without an end marker" in judged(steps(0, 40), said).verdict.headline


def test_threads_that_fail_together_at_the_exit_are_beside_the_program() -> None:
    heads = ("Exception in thread Thread-1:", "Exception in thread Thread-3:", "", "End training....")
    frame = '  File "/usr/lib/python3.10/threading.py", line 1016, in _bootstrap_inner'
    twice = [line for line in ("Traceback (most recent call last):", frame, "    self.run()") for _ in range(2)]
    assert judged(steps(0, 40), heads, twice, ["OSError: handle is closed"] * 2).verdict.outcome is Outcome.HEALTHY
