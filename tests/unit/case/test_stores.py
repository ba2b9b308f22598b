"""The same metric in several stores is one metric; ranks, processes and runs of a sweep stay apart."""

from __future__ import annotations

import math
import random
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.case.curves.loss import curves
from forensics.case.joined.stores import _one_of_ranks, _parted, counted, stores_of
from forensics.pipeline import Defaults, findings_of, ingest_run
from forensics.rules.host.stores import stores_disagree
from forensics.store.run import Run, run_of

FIXTURE = Path(__file__).parents[3] / "fixtures" / "runs" / "nan-in-many-stores"
EVENTS = "tb/events.out.tfevents.1750000000.node-a.4242.0"
T0 = 1_750_000_000.0


def losses(count: int, seed: int = 1) -> list[float]:
    """A noisy loss that falls."""
    rng = random.Random(seed)
    return [2.0 + 3.0 * math.exp(-n / 40) + rng.gauss(0, 0.02) for n in range(count)]


def series(
    source: str,
    values: list[float],
    steps: range,
    *,
    name: str = "loss",
    raw: str | None = None,
    digits: int | None = None,
    rank: int | None = None,
    clock_s: float | None = None,
) -> pl.DataFrame:
    """One series; `clock_s` is the wall time of step 0, and a step takes one second."""
    shown = [v if digits is None or not math.isfinite(v) else round(v, digits) for v in values]
    rows = {
        "source": [source] * len(steps),
        "seq": list(range(len(steps))),
        "rank": [rank] * len(steps),
        "step": list(steps),
        "t_ns": [None if clock_s is None else int((clock_s + n) * 1e9) for n in range(len(steps))],
        "name": [name] * len(steps),
        "raw_name": [raw or name] * len(steps),
        "value": shown,
    }
    types = {"t_ns": pl.Int64, "rank": pl.Int32, "step": pl.Int64, "value": pl.Float64}
    return pl.DataFrame(rows, schema_overrides=types)


def run_with(*frames: pl.DataFrame) -> Run:
    return run_of("run", {"metrics": pl.concat(frames)})


def lines_of(run: Run) -> list[tuple[float, float]]:
    return [(link.line.factor, link.line.offset) for link in stores_of(run).links]


def sources_counted(run: Run) -> list[str]:
    own = counted(run).filter(pl.col("name") == "loss")
    return own.select(pl.col("source").unique().sort()).collect()["source"].to_list()


def test_a_log_and_an_event_file_of_one_process_are_counted_once() -> None:
    values = losses(60)
    run = run_with(
        series("train.log", values, range(60), digits=4),
        series(EVENTS, [float(pl.Series([v], dtype=pl.Float32)[0]) for v in values], range(60), raw="train/loss"),
    )
    assert lines_of(run) == [(1.0, 0.0)]
    assert sources_counted(run) == ["train.log"]
    assert [c.source for c in curves(run, "loss")] == ["train.log"]


@given(
    factor=st.integers(1, 64),
    offset=st.integers(-3, 200),
    digits=st.sampled_from([3, 4, 6, None]),
    seed=st.integers(0, 9),
)
@settings(deadline=None, max_examples=60)
def test_the_factor_and_the_offset_of_the_steps_are_found(
    factor: int, offset: int, digits: int | None, seed: int
) -> None:
    values = losses(50, seed)
    steps = range(offset + 3, offset + 3 + 50 * factor, factor)
    run = run_with(series("train.log", values, steps, digits=digits), series("run-a.wandb", values, range(50)))
    assert lines_of(run) == [(float(factor), float(offset + 3))]


def test_steps_that_another_store_counts_in_tens_are_a_tenth_of_them() -> None:
    values = losses(50)
    run = run_with(series("a.csv", values, range(3, 53)), series("b.csv", values, range(30, 530, 10)))
    assert lines_of(run) == [(0.1, 0.0)]


def test_a_log_that_prints_three_digits_of_any_number_is_one_with_a_store_of_all() -> None:
    values = [0.2 + 60 * math.exp(-n / 12) + n / 7919 for n in range(60)]
    shown = [float(f"{value:.3g}") for value in values]
    shown[5] = 39.7  # of 39.755: more than half of the last digit off
    run = run_with(series("train.log", shown, range(60)), series(EVENTS, values, range(60)))
    assert lines_of(run) == [(1.0, 0.0)]
    assert [match.clashes["at"].to_list() for match in stores_of(run).links[0].matches] == [[5.0]]


def test_a_log_that_prints_every_tenth_step_is_held_by_the_event_file_that_has_all() -> None:
    values = losses(200)
    run = run_with(
        series("train.log", values[9::10], range(10, 201, 10), digits=4), series(EVENTS, values, range(1, 201))
    )
    assert lines_of(run) == [(1.0, 0.0)]
    assert sources_counted(run) == [EVENTS]


def test_a_log_that_reaches_further_than_a_denser_event_file_is_kept_beside_it() -> None:
    values = losses(200)
    run = run_with(
        series("train.log", values[9::10], range(10, 201, 10), digits=4),
        series(EVENTS, values[:185], range(1, 186)),
    )
    assert lines_of(run) == [(1.0, 0.0)]
    assert sources_counted(run) == [EVENTS, "train.log"]


@pytest.mark.parametrize(("lacks", "counts"), [(3, "train.log"), (4, EVENTS)])
def test_a_log_stands_for_an_event_file_of_whose_records_it_lacks_a_twentieth(lacks: int, counts: str) -> None:
    values = losses(60)
    log = series("train.log", values, range(60), digits=4).filter(~pl.col("step").is_in(range(10, 10 + lacks)))
    assert sources_counted(run_with(log, series(EVENTS, values, range(60)))) == [counts]


def test_a_store_that_alone_holds_a_learning_rate_is_the_one_that_is_kept() -> None:
    values = losses(40)
    run = run_with(
        series("train.log", values, range(40), digits=4),
        series(EVENTS, values, range(40)),
        series(EVENTS, [1e-4 * n for n in range(40)], range(40), name="lr"),
    )
    assert sources_counted(run) == [EVENTS]


def test_two_ranks_that_print_one_averaged_loss_stay_two() -> None:
    values = losses(40)
    run = run_with(series("rank0.log", values, range(40), rank=0), series("rank1.log", values, range(40), rank=1))
    assert not stores_of(run).links


def test_an_event_file_without_a_rank_is_that_of_the_first_rank_and_hides_none() -> None:
    values = losses(40)
    run = run_with(
        series("a.log", values, range(40), rank=0),
        series("b.log", values, range(40), rank=1),
        series(EVENTS, values, range(40)),
    )
    assert [(link.a[0], link.b[0]) for link in stores_of(run).links] == [("a.log", EVENTS)]
    assert sources_counted(run) == ["a.log", "b.log"]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("tb/events.out.tfevents.1750000000.node-a.4242.0", "tb/events.out.tfevents.1750000001.node-a.4243.0"),
        ("tb/events.out.tfevents.1750000000.node-a.4242.0", "tb/events.out.tfevents.1750000000.node-b.4242.0"),
        ("wandb/run-20250615_150640-aaaa/run-aaaa.wandb", "wandb/run-20250615_150641-bbbb/run-bbbb.wandb"),
        ("lr-low/train.log", "lr-high/train.log"),
        ("worker-0.log", "worker-1.log"),
        ("a/trainer_state.json", "b/trainer_state.json"),
    ],
)
def test_files_of_two_processes_or_runs_are_never_one(a: str, b: str) -> None:
    values = losses(40)
    assert not stores_of(run_with(series(a, values, range(40)), series(b, values, range(40)))).links


def test_of_a_sweep_with_one_seed_each_run_is_linked_within_its_own_folder() -> None:
    values = losses(40)
    own = [("a/train.log", "a/metrics.csv"), ("b/train.log", "b/metrics.csv")]
    run = run_with(*(series(name, values, range(40)) for pair in own for name in pair))
    assert [(link.a[0], link.b[0]) for link in stores_of(run).links] == own


def test_equal_values_at_other_times_are_another_run() -> None:
    values = losses(40)
    other = series("metrics.csv", values, range(40), clock_s=T0 + 7200)
    assert not stores_of(run_with(series(EVENTS, values, range(40), clock_s=T0), other)).links


def test_a_log_in_local_time_is_the_same_run_as_an_event_file() -> None:
    values = losses(40)
    log = series("train.log", values, range(40), clock_s=T0 + 2 * 3600 + 1.4)
    run = run_with(log, series(EVENTS, values, range(40), clock_s=T0))
    assert [link.line.clock_s for link in stores_of(run).links] == [7200.0]


def test_an_evaluation_loss_is_never_a_copy_of_a_training_loss() -> None:
    values = losses(40)
    run = run_with(series("train.log", values, range(40)), series(EVENTS, values, range(40), name="eval_loss"))
    assert not stores_of(run).links


def test_two_runs_with_one_schedule_are_not_one_because_of_their_learning_rate() -> None:
    rates = [3e-4 * (1 - n / 50) for n in range(40)]
    run = run_with(
        series("train.log", losses(40, 1), range(40)),
        series("train.log", rates, range(40), name="lr"),
        series(EVENTS, losses(40, 2), range(40)),
        series(EVENTS, rates, range(40), name="lr"),
    )
    assert not stores_of(run).links


def test_a_nan_that_stands_in_one_store_only_is_told_and_never_left_out() -> None:
    values = losses(40)
    broken = [*values[:30], *([math.nan] * 10)]
    hidden = [*values[:30], *([0.0] * 10)]
    run = run_with(series("train.log", hidden, range(40), digits=4), series("metrics.csv", broken, range(40)))
    assert "metrics.csv" in sources_counted(run)
    (finding,) = stores_disagree(run)
    assert (finding.cause, finding.severity.value, finding.onset.step) == ("hidden_in_one_store", "warning", 30)
    assert [(e.source, e.step) for e in finding.evidence] == [("metrics.csv", 30), ("train.log", 30)]


def test_another_value_at_one_step_is_told_with_both_places() -> None:
    values = losses(60)
    other = [*values[:20], values[20] + 0.5, *values[21:]]
    run = run_with(series("train.log", values, range(60), digits=4), series("metrics.csv", other, range(60)))
    (finding,) = stores_disagree(run)
    assert (finding.cause, finding.severity.value, finding.onset.step) == ("stores_differ", "info", 20)
    assert {e.source for e in finding.evidence} == {"metrics.csv", "train.log"}


def test_two_stores_that_part_are_both_kept() -> None:
    values = losses(60)
    run = run_with(
        series("train.log", values, range(60)), series("metrics.csv", [*values[:30], *losses(30, 5)], range(60))
    )
    (finding,) = stores_disagree(run)
    assert (finding.cause, finding.onset.step) == ("stores_part", 30)
    assert sources_counted(run) == ["metrics.csv", "train.log"]


def test_the_console_that_wandb_keeps_is_the_log() -> None:
    values = losses(40)
    run = run_with(series("train.log", values, range(40), digits=3), series("run-a.wandb", values, range(40), digits=3))
    assert sources_counted(run) == ["train.log"]


def test_a_console_line_in_wandb_repeats_its_history() -> None:
    values = losses(40)
    run = run_with(
        series("run-a.wandb", values, range(40), raw="train/loss"),
        series("run-a.wandb", values, range(40), raw="loss", digits=3),
    )
    assert counted(run).select(pl.col("raw_name").unique()).collect()["raw_name"].to_list() == ["train/loss"]


def test_the_bundled_run_is_counted_once_and_judged_by_its_log() -> None:
    run = ingest_run(FIXTURE)
    assert sources_counted(run) == ["train.out"]
    found = list(findings_of(run, Defaults()))
    assert [f.severity.value for f in found if f.rule == "HST002"] == ["info"]
    assert not [f for f in found if f.rule == "HST001"]
    assert {e.source for f in found if f.rule == "NAN001" for e in f.evidence} == {"train.out"}
    scales = {(link.line.factor, link.line.offset) for link in stores_of(run).links if link.b[0].endswith(".wandb")}
    assert scales == {(1.0, 0.0)}  # by the trainer's own step, not by the tracker's rows


def test_a_run_of_one_source_has_no_stores() -> None:
    assert not stores_of(run_with(series("train.log", losses(10), range(10)))).links
    assert not stores_of(Run("empty")).links


def test_all_attempts_are_read_from_the_store_that_must_be_kept_for_one_of_them() -> None:
    """The table alone has a core metric in the second attempt; in the first either store would do."""
    attempts = [(0, losses(20, 1), range(20)), (1, losses(40, 2), range(40))]
    frames = [
        series(source, values, steps, raw=raw).with_columns(attempt=pl.lit(number, dtype=pl.Int32))
        for source, raw in (("job.out", "loss"), ("metrics.jsonl", "train/loss"))
        for number, values, steps in attempts
    ]
    alone = series("metrics.jsonl", losses(4, 3), range(0, 40, 10), name="eval_loss", raw="val/loss")
    frames.append(alone.with_columns(attempt=pl.lit(1, dtype=pl.Int32)))
    left_out = stores_of(run_with(*frames)).left_out.select("source", "attempt").unique().sort("attempt").rows()
    assert left_out == [("job.out", 0), ("job.out", 1)]


@pytest.mark.parametrize(("alike", "apart", "parted"), [(5, 5, True), (4, 5, False), (5, 4, False)])
def test_two_stores_part_after_five_records_alike_and_before_five_apart(alike: int, apart: int, parted: bool) -> None:
    equal = [True] * alike + [False] * apart
    assert _parted(pl.DataFrame({"finite": [True] * len(equal), "equal": equal})) is parted


def test_two_stores_that_agree_again_have_not_parted() -> None:
    equal = [True] * 5 + [False] * 5 + [True]
    assert not _parted(pl.DataFrame({"finite": [True] * len(equal), "equal": equal}))


def test_a_file_of_one_of_several_ranks_is_not_left_out_for_one_that_names_none() -> None:
    keeper, first, second = ("all.log", 0, None), ("a.log", 0, 0), ("b.log", 0, 1)
    assert _one_of_ranks(keeper, first, [keeper, first, second])
    assert not _one_of_ranks(keeper, first, [keeper, first])
    assert not _one_of_ranks(second, first, [keeper, first, second])
    assert not _one_of_ranks(keeper, keeper, [keeper, first, second])


def begun_again(source: str, *attempts: range, raw: str = "loss") -> pl.DataFrame:
    """A seeded loss of a source whose attempts did these steps."""
    frames = [
        series(source, [losses(60)[n] for n in steps], steps, raw=raw).with_columns(
            attempt=pl.lit(number, dtype=pl.Int32)
        )
        for number, steps in enumerate(attempts)
    ]
    return pl.concat(frames)


@pytest.mark.parametrize(
    ("log", "kept"),
    [
        ((range(30), range(60)), 90),
        ((range(30), range(1, 60)), 0),  # the second goes on from the first step
        ((range(30), range(30, 60)), 0),
        ((range(3), range(60)), 63),
        ((range(2), range(60)), 2),  # two records alike are no beginning, and none to be left out
    ],
)
def test_a_log_that_begins_anew_is_kept_beside_a_store_of_the_last_attempt_with_the_same_values(
    log: tuple[range, ...], kept: int
) -> None:
    alone = series("state.jsonl", losses(4, 3), range(0, 60, 15), name="eval_loss", raw="val/loss")
    state = begun_again("state.jsonl", range(60), raw="train/loss")
    run = run_with(
        begun_again("job.out", *log), pl.concat([state, alone.with_columns(attempt=pl.lit(0, dtype=pl.Int32))])
    )
    own = counted(run).filter(pl.col("source") == "job.out", pl.col("name") == "loss")
    assert own.select(pl.len()).collect().item() == kept
