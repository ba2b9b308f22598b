"""The last step that a process had reached before its fatal line, whichever store holds it."""

from __future__ import annotations

import polars as pl

from forensics.case.last_steps import last_step
from forensics.store.run import Run, run_of

_SECOND = 1_000_000_000


def _run(*rows: dict[str, object]) -> Run:
    given = [{"name": "loss", "value": 1.0, "seq": number, **row} for number, row in enumerate(rows)]
    return run_of("r", {"metrics": pl.DataFrame(given, infer_schema_length=None)})


def test_the_steps_of_the_same_file_before_the_line_come_first() -> None:
    run = _run(
        {"source": "a.log", "line": 1, "step": 10},
        {"source": "a.log", "line": 9, "step": 20},
        {"source": "m.csv", "line": 3, "step": 30},
    )
    assert last_step(run, "a.log", 5) == 10


def test_an_error_stream_without_steps_takes_those_of_the_output_beside_it() -> None:
    run = _run(
        {"source": "job-1.out", "line": 1, "step": 40},
        {"source": "job-2.out", "line": 1, "step": 90},
    )
    assert last_step(run, "job-1.err", 5) == 40


def test_a_step_after_the_time_of_the_error_is_not_the_last_one() -> None:
    run = _run(
        {"source": "job.out", "line": 1, "step": 40, "t_ns": 100 * _SECOND},
        {"source": "job.out", "line": 2, "step": 50, "t_ns": 200 * _SECOND},
    )
    assert last_step(run, "launcher.log", 5, 150 * _SECOND) == 40


def test_a_record_of_the_same_second_may_have_been_printed_before() -> None:
    run = _run({"source": "job.out", "line": 1, "step": 40, "t_ns": 101 * _SECOND})
    assert last_step(run, "launcher.log", 5, 100 * _SECOND) == 40


def test_where_all_records_seem_later_the_clocks_differ_and_the_last_record_counts() -> None:
    run = _run({"source": "job.out", "line": 1, "step": 40, "t_ns": 9_000 * _SECOND})
    assert last_step(run, "launcher.log", 5, 100 * _SECOND) == 40


def test_a_rank_takes_its_own_log_before_those_of_others() -> None:
    run = _run(
        {"source": "logs/0/stdout.log", "line": 1, "step": 40, "rank": 0},
        {"source": "logs/3/stdout.log", "line": 1, "step": 37, "rank": 3},
    )
    assert last_step(run, "launcher.log", 5, rank=3) == 37


def test_printed_steps_come_before_the_counter_of_a_tracker() -> None:
    run = _run(
        {"source": "train.out", "line": 1, "step": 40},
        {"source": "run.wandb", "byte": 100, "step": 400},
    )
    assert last_step(run, "launcher.log", 5) == 40


def test_a_tracker_alone_gives_the_step_of_its_last_record() -> None:
    run = _run({"source": "events", "byte": 1, "step": 5}, {"source": "events", "byte": 9, "step": 35})
    assert last_step(run, "job.err", 5) == 35


def test_an_epoch_and_an_evaluation_are_no_training_step() -> None:
    run = _run(
        {"source": "a.out", "line": 1, "epoch": 12.0},
        {"source": "a.out", "line": 2, "step": 500, "name": "eval_loss"},
    )
    assert last_step(run, "a.err", 5) is None


def test_a_data_base_that_fills_its_pages_from_their_ends_is_read_in_the_order_of_its_records() -> None:
    steps = [{"source": "t.db", "byte": 8000 - at, "seq": at, "step": at, "t_ns": _SECOND * at} for at in (5, 10, 70)]
    assert last_step(_run(*steps), "launcher.log", 5) == 70
    assert last_step(_run(*steps), "launcher.log", 5, 100 * _SECOND) == 70
    assert last_step(_run(*steps), "launcher.log", 5, 20 * _SECOND) == 10


def test_a_record_with_an_epoch_alone_stands_at_the_step_of_that_epoch() -> None:
    run = _run(
        {"source": "out/checkpoint-50/trainer_state.json", "line": 9, "step": 50, "epoch": 0.4386},
        {"source": "train.log", "line": 4, "epoch": 0.4386},
        {"source": "train.log", "line": 8, "epoch": 0.6667},
    )
    assert last_step(run, "train.log", 20) == 76
    assert last_step(run, "train.log", 6) == 50


def test_a_record_that_tells_its_epoch_takes_the_steps_of_an_epoch_from_those_that_tell_both() -> None:
    state = [{"source": "trainer_state.json", "step": 10 * n, "epoch": round(10 * n / 136, 6)} for n in range(1, 5)]
    run = _run(*state, {"source": "train.log", "line": 3, "epoch": 0.3971})
    assert last_step(run, "train.log", 9) == 54


def test_an_epoch_is_no_step_where_the_records_disagree_on_its_steps() -> None:
    state = [{"source": "trainer_state.json", "step": 10 * n, "epoch": 10 * n / (100 + 9 * n)} for n in range(1, 5)]
    run = _run(*state, {"source": "train.log", "line": 3, "epoch": 0.3971})
    assert last_step(run, "train.log", 9) == 40


def test_the_rows_of_a_database_count_in_the_order_in_which_it_got_them() -> None:
    rows = [{"source": "runs.db", "step": n, "byte": 9_000 - n, "t_ns": n * _SECOND} for n in (10, 20, 30, 40)]
    run = _run(*rows)
    assert last_step(run, "train.log", 5) == 40
    assert last_step(run, "train.log", 5, 25 * _SECOND) == 20


def test_records_count_in_the_order_in_which_they_were_written_each_once() -> None:
    rows = [{"source": "a.log", "line": line, "step": step} for line, step in ((9, 20), (1, 10), (1, 10), (5, 15))]
    assert [last_step(_run(*rows), "a.log", at) for at in (2, 6, 10)] == [10, 15, 15]
    other = {"source": "b.log", "line": 1, "step": 7}
    assert last_step(_run(*rows, other), "b.log", 2) == 7
    assert last_step(_run(*rows, other), "b.log", 1) == 15


def _with_a_finer_store(last: int, line: int = 9, rank: int | None = None) -> int | None:
    printed = [{"source": "a.log", "line": at, "step": 10 * at} for at in (1, 2, line)]
    run = _run(*printed, {"source": "m.jsonl", "line": 3, "step": last, "rank": rank})
    return last_step(run, "a.log", 5)


def test_a_finer_store_says_how_far_a_log_that_prints_some_steps_had_come() -> None:
    assert _with_a_finer_store(29, line=2) == 29


def test_a_store_is_no_finer_where_the_log_would_have_printed_its_step_or_goes_on() -> None:
    assert (_with_a_finer_store(30, line=2), _with_a_finer_store(29, line=9)) == (20, 20)


def test_the_finer_store_of_another_rank_says_nothing() -> None:
    assert _with_a_finer_store(29, line=2, rank=3) == 20
