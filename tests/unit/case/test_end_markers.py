"""Marks of an end against the records about them: which run of a file they speak of, to the record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from forensics.api import triage
from forensics.case.end_markers import SURVIVED_STEPS, Mark, Marks, Steps, ends_the_log, last_lines, marks_of
from forensics.model import Outcome
from forensics.store.run import Run, run_of


def steps(*at: int, rank: Sequence[int | None] | None = None, step: Sequence[int] | None = None) -> Steps:
    """Records at these places, of one step each and of no rank unless told."""
    ranks = rank or [None] * len(at)
    return Steps(at, step or at, ranks, frozenset(ranks))


def mark(at: int, source: str = "a.log", t_ns: int | None = None) -> Mark:
    return Mark(source, at, t_ns, "success", "done")


def test_steps_are_counted_between_two_places_and_not_at_them() -> None:
    one = steps(10, 20, 30, 40)
    assert one.at_least(2, after=10, before=40)
    assert not one.at_least(3, after=10, before=40)
    assert one.at_least(3, after=10)
    assert not one.at_least(4, after=10)
    assert one.at_least(4, after=9)
    assert one.at_least(0, after=40)
    assert not one.at_least(1, after=40)
    assert not Steps().at_least(1, after=0)


def test_a_step_that_is_printed_twice_counts_once() -> None:
    one = steps(10, 20, 30, step=[1, 1, 2])
    assert one.at_least(2, after=0)
    assert not one.at_least(3, after=0)


def test_steps_of_a_rank_are_its_own_and_those_that_name_none() -> None:
    one = steps(10, 20, 30, 40, rank=[0, 1, 0, None])
    assert one.at_least(3, after=0, rank=0)
    assert not one.at_least(4, after=0, rank=0)
    assert one.at_least(2, after=0, rank=1)
    assert not one.at_least(3, after=0, rank=1)
    assert one.at_least(1, after=0, rank=7)
    assert not one.at_least(2, after=0, rank=7)
    assert one.at_least(4, after=0)
    assert not steps(10, 20, rank=[0, 0]).at_least(1, after=0, rank=1)


def test_records_before_a_place_are_counted_without_it() -> None:
    assert [steps(10, 20, 30).count(before=place) for place in (10, 11, 30, 31)] == [0, 1, 2, 3]


def marks(
    *at: int, starts: Sequence[int] = (), trained: Sequence[int] = (), times: Sequence[int | None] | None = None
) -> Marks:
    told = tuple(mark(place, t_ns=t) for place, t in zip(at, times or [None] * len(at), strict=True))
    return Marks(told, tuple(mark(place) for place in starts), {"a.log": steps(*trained)} if trained else {})


@pytest.mark.parametrize(("later", "is_final"), [(2, True), (3, False)])
def test_a_mark_is_final_unless_three_steps_were_trained_after_it(later: int, is_final: bool) -> None:
    one = marks(50, trained=[10, 20, *range(60, 60 + later)])
    assert (one.final is not None) is is_final


def test_a_mark_is_final_unless_another_run_was_started_in_its_file() -> None:
    assert marks(50, starts=[40]).final is not None
    assert marks(50, starts=[50]).final is not None
    assert marks(50, starts=[51]).final is None
    other = Marks((mark(50),), (mark(60, source="b.log"),), {"b.log": steps(*range(60, 90))})
    assert other.final is not None


def test_the_last_of_several_final_marks_is_told() -> None:
    one = marks(50, 60)
    assert one.final is one.successes[1]
    assert marks().final is None
    two = Marks((mark(50), mark(9, source="b.log")), (mark(10, source="b.log"),), {})
    assert two.final is two.successes[0]


def test_an_error_behind_a_mark_is_of_its_run_unless_three_steps_lie_between() -> None:
    assert marks(50, trained=[51, 52]).success_for("a.log", 60, None) is not None
    assert marks(50, trained=[51, 52, 53]).success_for("a.log", 60, None) is None
    assert marks(50, trained=[51, 52, 60]).success_for("a.log", 60, None) is not None
    assert marks(50, trained=[50, 51, 52]).success_for("a.log", 60, None) is not None


def test_an_error_before_a_mark_is_of_its_run_whatever_was_trained_between() -> None:
    assert marks(50, trained=range(10, 50)).success_for("a.log", 9, None) is not None
    assert marks(50, starts=[20]).success_for("a.log", 9, None) is None
    assert marks(50, starts=[9]).success_for("a.log", 9, None) is not None
    assert marks(50, starts=[50]).success_for("a.log", 9, None) is not None
    assert marks(50, starts=[60]).success_for("a.log", 9, None) is not None


def test_a_start_between_a_mark_and_an_error_behind_it_parts_them() -> None:
    assert marks(50, starts=[55]).success_for("a.log", 60, None) is None
    assert marks(50, starts=[60]).success_for("a.log", 60, None) is not None
    assert marks(50, starts=[50]).success_for("a.log", 60, None) is not None


def test_of_two_marks_that_speak_of_a_place_the_later_one_is_told_and_one_that_does_not_is_passed_over() -> None:
    both = marks(50, 60)
    assert both.success_for("a.log", 70, None) is both.successes[1]
    parted = marks(50, 80, starts=[75])
    assert parted.success_for("a.log", 70, None) is parted.successes[0]


def test_a_mark_of_another_file_speaks_where_its_time_is_no_later_and_the_file_has_none_of_its_own() -> None:
    one = marks(5, 6, 7, times=[100, 200, None])
    assert one.success_for("b.log", 1, 150) is one.successes[0]
    assert one.success_for("b.log", 1, 200) is one.successes[1]
    assert one.success_for("b.log", 1, 99) is None
    assert one.success_for("b.log", 1, None) is None
    own = marks(5, starts=[6], times=[100])
    assert own.success_for("a.log", 9, 500) is None


def run(events: Sequence[tuple[str, int, str]], losses: Sequence[tuple[int, int | None, int | None]] = ()) -> Run:
    """Events as (source, line, code), and losses of one file as (line, step, rank)."""
    told = pl.DataFrame(events, schema=["source", "line", "code"], orient="row")
    told = told.with_columns(seq=pl.int_range(pl.len()), text=pl.lit("words"), attrs=pl.lit(json.dumps({})))
    rows = pl.DataFrame(losses, schema={"line": pl.Int64, "step": pl.Int64, "rank": pl.Int32}, orient="row")
    rows = rows.with_columns(seq=pl.int_range(pl.len()), value=pl.lit(2.0), value_class=pl.lit("finite"))
    named: dict[str, Any] = {"source": "a.log", "name": "loss", "raw_name": "loss"}
    return run_of("made", {"events": told, "metrics": rows.with_columns(**{k: pl.lit(v) for k, v in named.items()})})


def test_marks_are_told_in_the_order_of_their_files_and_lines_and_starts_apart() -> None:
    found = marks_of(run([("b.log", 3, "success"), ("a.log", 9, "megatron.ended"), ("a.log", 4, "megatron.started")]))
    assert [(m.source, m.at, m.line) for m in found.successes] == [("a.log", 9, 9), ("b.log", 3, 3)]
    assert [(m.source, m.at) for m in found.starts] == [("a.log", 4)]
    assert found.steps_of("a.log").at_least(0, after=0)


def test_records_without_a_step_are_counted_where_a_file_prints_none() -> None:
    unnumbered = marks_of(run([], [(5, None, None), (6, None, None), (7, None, None)]))
    assert unnumbered.steps_of("a.log").at_least(3, after=4)
    assert not unnumbered.steps_of("a.log").at_least(3, after=5)
    one_numbered = marks_of(run([], [(5, None, None), (6, 1, None), (7, None, None)]))
    assert one_numbered.steps_of("a.log").at_least(1, after=4)
    assert not one_numbered.steps_of("a.log").at_least(2, after=4)


def test_records_of_several_ranks_are_sorted_by_place_and_keep_their_ranks() -> None:
    found = marks_of(run([], [(9, 3, 1), (5, 1, 0), (7, 2, 1)])).steps_of("a.log")
    assert (list(found.at), list(found.step), list(found.rank)) == ([5, 7, 9], [1, 2, 3], [0, 1, 1])
    assert found.ranks == {0, 1}
    assert marks_of(run([], [(5, 1, 0), (7, 2, 0)])).steps_of("a.log").ranks == {0}
    assert marks_of(run([], [(5, 1, None), (7, 2, 0)])).steps_of("a.log").ranks == {None, 0}


def test_a_line_is_among_the_last_of_its_log_up_to_six_before_it() -> None:
    last = last_lines(run([("a.log", 90, "last_line"), ("a.log", 100, "last_line"), ("b.log", 7, "last_line")]))
    assert last == {"a.log": 100, "b.log": 7}
    assert [ends_the_log("a.log", line, last) for line in (93, 94, 100, None)] == [False, True, True, False]
    assert not ends_the_log("c.log", 1, last)


def test_an_error_is_survived_by_three_steps() -> None:
    assert SURVIVED_STEPS == 3


CAUGHT = ["Traceback (most recent call last):", '  File "train.py", line 62, in before', "    open(name)",
          "FileNotFoundError: [Errno 2] No such file or directory: 'cache.json'"]  # fmt: skip


def outcome_of(place: Path, own: str, other: str) -> Outcome:
    """The outcome of a run of two ranks: rank 0 trains and caught an error, `own` and `other` are their last words."""
    trained = [f"step {at} loss {3 - at / 20:.3f}" for at in range(1, 41)]
    files = {"0/stderr.log": CAUGHT, "0/stdout.log": [*trained, own], "1/stderr.log": CAUGHT, "1/stdout.log": [other],
             "z.log": [own]}  # fmt: skip
    for name, lines in files.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return triage(place).verdict.outcome


def test_an_error_on_the_one_stream_of_a_process_is_over_where_the_other_says_that_training_completed(
    tmp_path: Path,
) -> None:
    assert outcome_of(tmp_path, "Training completed", "Training completed") is not Outcome.FAILED


def test_an_error_of_processes_that_say_no_end_stands(tmp_path: Path) -> None:
    assert outcome_of(tmp_path, "saving", "saving") is Outcome.FAILED
