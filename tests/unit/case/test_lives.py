"""Restarts on one time line: within a source, across sources, and what is none."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from forensics.case.processes.attempts import attempts
from forensics.case.processes.lives import boundaries, lives, rows_of
from forensics.pipeline import ingest_run
from forensics.store.run import Run, run_of

SECOND = 1_000_000_000


def life(
    first: int,
    last: int,
    *,
    source: str = "a.log",
    attempt: int = 0,
    line: int = 0,
    t: int | None = None,
    every: int = 1,
) -> pl.DataFrame:
    steps = list(range(first, last + 1, every))
    return pl.DataFrame(
        {
            "source": source,
            "attempt": attempt,
            "seq": [line + i for i in range(len(steps))],
            "line": [line + i for i in range(len(steps))],
            "step": steps,
            "t_ns": [None if t is None else (t + i) * SECOND for i in range(len(steps))],
            "name": "loss",
            "raw_name": "loss",
            "value": [2.0 - 0.001 * s for s in steps],
        },
        schema_overrides={"t_ns": pl.Int64},
    )


def loaded(step: int | None, line: int, source: str = "a.log") -> pl.DataFrame:
    return pl.DataFrame(
        {"source": [source], "seq": [line], "line": [line], "step": [step], "kind": ["resumed"]},
        schema_overrides={"step": pl.Int64},
    )


def made(*parts: pl.DataFrame, points: pl.DataFrame | None = None) -> Run:
    return run_of("made", {"metrics": pl.concat(parts)} | ({} if points is None else {"checkpoints": points}))


def told(run: Run) -> list[tuple[str, int, int]]:
    return [(b.kind, b.after.first, b.replayed) for b in boundaries(run)]


def test_a_run_that_was_never_restarted_is_one_life() -> None:
    run = made(life(0, 99))
    [only] = lives(run)
    assert (only.first, only.last, only.records, only.every) == (0, 99, 100, 1.0)
    assert boundaries(run) == ()


def test_a_restart_that_goes_back_replays_steps() -> None:
    assert told(made(life(0, 99), life(80, 150, attempt=1, line=200))) == [("replays", 80, 20)]


def test_a_line_that_says_what_was_loaded_divides_a_log_whose_steps_only_grow() -> None:
    run = made(life(0, 99), life(100, 150, line=200), points=loaded(100, 150))
    assert told(run) == [("continues", 100, 0)]
    assert boundaries(run)[0].after.resumed_step == 100


def test_steps_that_count_from_the_start_are_no_resume() -> None:
    assert told(made(life(0, 99), life(0, 50, attempt=1, line=200))) == [("scratch", 0, 0)]


def test_a_next_stage_that_loads_the_last_one_counts_from_the_start() -> None:
    run = made(life(0, 99), life(0, 50, attempt=1, line=200), points=loaded(99, 150))
    assert told(run) == [("scratch", 0, 0)]


def test_two_lives_of_one_parent_are_a_fork() -> None:
    run = made(life(0, 99), life(80, 120, attempt=1, line=200), life(70, 130, attempt=2, line=400))
    assert [(b.before.first, b.fork) for b in boundaries(run)] == [(0, False), (0, True)]


def test_a_later_log_goes_on_from_an_earlier_one() -> None:
    run = made(life(0, 99, t=1000), life(90, 150, source="b.log", t=2000))
    assert told(run) == [("replays", 90, 10)]


def test_a_log_without_a_clock_goes_on_where_it_says_what_it_loaded() -> None:
    run = made(life(0, 99), life(90, 150, source="b.log", line=10), points=loaded(89, 5, "b.log"))
    assert told(run) == [("replays", 90, 10)]


def test_runs_of_a_sweep_are_not_restarts_of_each_other() -> None:
    for first in (1, 0):  # others of it may count from 0
        runs = (life(i % 2 * first, 99, source=f"{i}.log", t=1000 * i) for i in range(4))
        assert boundaries(made(*runs)) == ()


def test_two_stores_of_one_run_are_not_restarts_of_each_other() -> None:
    assert boundaries(made(life(10, 99, t=1000), life(10, 99, source="events", t=1000))) == ()


def test_ranks_that_log_side_by_side_are_lives_of_their_own() -> None:
    ranks = [life(0, 50).with_columns(rank=pl.lit(r, dtype=pl.Int32)) for r in (0, 1)]
    assert len(lives(made(*ranks))) == 2
    assert boundaries(made(*ranks)) == ()


def test_the_rows_of_a_life_are_its_own() -> None:
    run = made(life(0, 99), life(80, 150, attempt=1, line=200))
    [boundary] = boundaries(run)
    assert rows_of(run, boundary.before, "loss")["at"].to_list() == list(range(100))
    assert rows_of(run, boundary.after, "loss")["at"].to_list() == list(range(80, 151))


def test_records_without_steps_have_no_lives() -> None:
    assert lives(made(life(0, 9).with_columns(step=pl.lit(None, dtype=pl.Int64)))) == ()


def test_quantities_printed_under_one_name_are_one_life() -> None:
    loss = life(10, 400, every=10).with_columns(raw_name=pl.lit("value"))
    rate = loss.with_columns(name=pl.lit("lr"), value=0.001, seq=pl.col("seq") + 1)
    run = run_of("made", {"metrics": pl.concat([loss, rate])})
    assert len(lives(run)) == 1
    assert boundaries(run) == ()


def test_a_summary_printed_once_behind_the_last_step_is_no_process_that_went_on() -> None:
    assert boundaries(made(life(0, 139), life(140, 140, source="train.log"))) == ()
    assert told(made(life(0, 139), life(140, 150, source="train.log"))) == [("continues", 140, 0)]


def parts(*spans: tuple[int, int]) -> Run:
    """A log that only goes on counting to step 60, and a tracker's file for each of `spans` of it."""
    files = [
        life(*span, source=f"tb/events.out.tfevents.{number}.host.7.0", line=1) for number, span in enumerate(spans)
    ]
    return made(life(1, 60, source="state.jsonl", line=1), *files)


def test_a_log_that_only_goes_on_counting_is_parted_where_a_tracker_opened_its_next_file() -> None:
    (edge,) = boundaries(parts((1, 24), (25, 60)))
    assert (edge.before.last, edge.after.first, edge.kind) == (24, 25, "continues")


def test_each_next_file_of_a_tracker_parts_it() -> None:
    assert [edge.after.first for edge in boundaries(parts((1, 24), (25, 40), (41, 60)))] == [25, 41]


def test_a_file_that_holds_the_whole_or_that_nothing_comes_before_parts_nothing() -> None:
    assert boundaries(parts((1, 60), (1, 60))) == ()
    assert boundaries(parts((25, 60))) == ()
    assert boundaries(parts((1, 10), (25, 60))) == ()


def test_an_attempt_begins_where_a_tracker_opened_its_next_file() -> None:
    found = attempts(parts((1, 24), (25, 60)))
    assert [(one.first, one.last) for one in found.every] == [(1, 24), (25, 60)]
    assert found.of("state.jsonl", line=24) == 0
    assert found.of("state.jsonl", line=25) == 1


def bar(frames: list[tuple[int, int, int]]) -> pl.DataFrame:
    """Frames of progress bars in a log: the place, the steps done and those planned."""
    places, done, plan = (list(column) for column in zip(*frames, strict=True))
    rows = {"source": "a.log", "attempt": 0, "seq": places, "line": places, "unit": "step", "done": done, "plan": plan}
    return pl.DataFrame(rows, schema_overrides={"attempt": pl.Int32})


@pytest.mark.parametrize(("done", "kind"), [(40, "scratch"), (97, "stage")])
def test_a_full_bar_of_an_evaluation_is_no_end_of_the_training_that_it_interrupts(done: int, kind: str) -> None:
    training = [(n, n, 97) for n in range(1, done + 1)]
    evaluation = [(25, n, 4) for n in range(5)]
    again = [(200 + n, n, 97) for n in range(98)]
    records = pl.concat([life(1, done, line=1), life(1, 97, attempt=1, line=201)])
    run = run_of("made", {"metrics": records, "progress": bar(sorted(training + evaluation) + again)})
    assert [edge.kind for edge in boundaries(run)] == [kind]


def test_a_plan_that_is_told_before_anything_is_done_is_no_progress(tmp_path: Path) -> None:
    begins = ["{} - __main__ - INFO - Starting training...", "{} - trainer - INFO - Starting training..."]
    step = "{} - trainer - INFO - Step {} | Loss: {} | LR: 1.0"
    plan = "{} - trainer - INFO - Total training steps: 31250"
    lines = [line.format("2026-02-13 14:53:23,833") for line in begins]
    lines += [step.format("2026-02-13 14:54:54,206", 50, 0.0002), plan.format("2026-02-13 14:55:25,170")]
    lines += [line.format("2026-02-13 14:55:25,173") for line in begins]
    lines += [step.format("2026-02-13 14:56:22,976", 50, 0.0002), step.format("2026-02-13 15:01:10,123", 300, 0.0006)]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    assert [edge.kind for edge in boundaries(ingest_run(tmp_path))] == ["scratch"]
