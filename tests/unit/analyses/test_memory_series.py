"""Which series a run has of its memory, what each number is, and when a growing one would meet the device's size."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import polars as pl
import pytest

from forensics.analyses.memory import series as memory_series
from forensics.analyses.memory.capacity import beside_reserved, capacity_of
from forensics.analyses.memory.ranks import imbalances
from forensics.analyses.memory.series import Series, printed_unit, series_of
from forensics.analyses.memory.shape import form_of
from forensics.analyses.memory.verdict import reading_of
from forensics.store.run import Run, run_of

STEPS = np.arange(0, 1000, 10)
NOISE = np.random.default_rng(3).normal(0, 0.004, len(STEPS))
LEVEL = 20 + NOISE
SLOPE = 20 + 0.004 * STEPS + NOISE
STAIRS = 20 + 0.5 * (STEPS // 200) + NOISE


def frame(
    name: str,
    values: np.ndarray,
    *,
    rank: int | None = None,
    steps: np.ndarray = STEPS,
    attempt: int = 0,
    source: str = "train.log",
) -> pl.DataFrame:
    return pl.DataFrame({"seq": np.arange(len(steps)), "step": steps, "value": values}).with_columns(
        source=pl.lit(source), name=pl.lit(name), raw_name=pl.lit(name), rank=pl.lit(rank, dtype=pl.Int32),
        attempt=pl.lit(attempt, dtype=pl.Int32),
    )  # fmt: skip


def made(*frames: pl.DataFrame) -> Run:
    return run_of("made", {"metrics": pl.concat(frames)})


def series(run: Run, name: str) -> Series:
    return next(s for s in series_of(run) if s.name == name)


def test_a_peak_that_never_falls_is_a_running_maximum_and_one_that_does_is_not() -> None:
    run = made(frame("mem_peak_gib", np.maximum.accumulate(LEVEL)), frame("mem_reserved_peak_gib", LEVEL))
    assert (series(run, "mem_peak_gib").kind, series(run, "mem_reserved_peak_gib").kind) == (
        "cumulative peak",
        "interval peak",
    )
    assert series(run, "mem_peak_gib").form.kind in {"flat", "plateau"}


def test_free_memory_that_falls_is_memory_that_grows() -> None:
    one = series(made(frame("gpu_mem_free_gib", 60 - SLOPE)), "gpu_mem_free_gib")
    assert one.form.kind == "slope"
    assert one.form.grows
    assert one.peak == pytest.approx((60 - SLOPE).min())


def test_a_staircase_tells_its_period_and_its_height() -> None:
    form = series(made(frame("mem_allocated_gib", STAIRS)), "mem_allocated_gib").form
    assert form.kind == "staircase"
    assert form.period == pytest.approx(200, abs=20)
    assert form.height == pytest.approx(0.5, abs=0.05)


def test_missing_steps_change_neither_shape_nor_slope() -> None:
    kept = np.random.default_rng(5).random(len(STEPS)) > 0.4
    form = series(made(frame("mem_allocated_gib", SLOPE[kept], steps=STEPS[kept])), "mem_allocated_gib").form
    assert form.kind == "slope"
    assert form.per_step == pytest.approx(0.004, rel=0.05)


def test_a_restart_begins_a_new_series() -> None:
    run = made(frame("mem_allocated_gib", SLOPE), frame("mem_allocated_gib", LEVEL, attempt=1))
    assert [(s.attempt, s.form.kind) for s in series_of(run)] == [(0, "slope"), (1, "flat")]


def test_ranks_are_judged_each_by_itself_and_the_highest_is_named() -> None:
    run = made(*(frame("mem_allocated_gib", LEVEL + (6 if r == 2 else 0), rank=r) for r in range(4)))
    (row,) = imbalances(run)
    assert (row.top.rank, len(row.levels)) == (2, 4)
    assert row.ratio == pytest.approx(26 / 20, rel=0.01)


def test_reserved_memory_is_projected_to_the_device_less_what_others_hold() -> None:
    total = frame("gpu_mem_total_gib", np.full(len(STEPS), 40.0))
    run = made(frame("mem_reserved_gib", SLOPE), total)
    reach = series(run, "mem_reserved_gib").reach
    assert reach is not None
    # 40 GiB less 0.3 to 1.5 GiB are reached from 20 GiB by 0.004 GiB per step
    assert reach.low == pytest.approx((38.5 - 20) / 0.004, rel=0.05)
    assert reach.high == pytest.approx((39.7 - 20) / 0.004, rel=0.05)
    assert not capacity_of(run).measured


@pytest.mark.parametrize("values", [LEVEL, np.minimum(SLOPE, 20.8), np.round(20 + 0.0004 * STEPS, 1)])
def test_flat_plateau_and_unresolved_series_are_not_projected(values: np.ndarray) -> None:
    run = made(frame("mem_reserved_gib", values), frame("gpu_mem_total_gib", np.full(len(STEPS), 40.0)))
    one = series(run, "mem_reserved_gib")
    assert one.form.kind in {"flat", "plateau", "unresolved"}
    assert one.reach is None


def test_a_step_of_one_printed_unit_is_unresolved() -> None:
    values = np.round(20 + 0.0007 * STEPS, 1)
    form = series(made(frame("mem_allocated_gib", values)), "mem_allocated_gib").form
    assert form.kind == "unresolved"
    assert "log more digits" in form.note


@pytest.mark.parametrize(("digits", "unit"), [(1, 0.1), (2, 0.01)])
def test_the_unit_of_the_last_digit_is_guessed(digits: int, unit: float) -> None:
    assert printed_unit(np.round(SLOPE, digits)) == pytest.approx(unit)
    assert printed_unit(SLOPE) == 0


def test_a_leak_is_read_from_both_curves_and_fragmentation_too() -> None:
    leak = made(frame("mem_allocated_gib", SLOPE), frame("mem_reserved_gib", SLOPE + 2))
    gap = made(frame("mem_allocated_gib", LEVEL), frame("mem_reserved_gib", SLOPE + 2))
    assert reading_of(series(leak, "mem_allocated_gib")).words == "per-step retention"
    assert reading_of(series(leak, "mem_allocated_gib")).thumb == "fragmentation"
    assert reading_of(series(gap, "mem_allocated_gib")).words == "fragmentation"
    assert reading_of(series(gap, "mem_reserved_gib")).words == "fragmentation"


def test_of_more_series_than_are_judged_no_other_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made_of: list[str] = []

    def counted(own: tuple[str, int | None, int, str], *rest: Any) -> Series:
        made_of.append(own[0])
        return one(own, *rest)

    one = memory_series._one  # type: ignore[attr-defined]
    monkeypatch.setattr(memory_series, "_MOST_SERIES", 2)
    monkeypatch.setattr(memory_series, "_one", counted)
    short = frame("mem_reserved_gib", LEVEL[:-1], steps=STEPS[:-1], source="a.log")
    long = [frame("mem_reserved_gib", LEVEL, source=f"{name}.log") for name in "bcd"]
    assert [one.source for one in series_of(made(short, *long))] == ["b.log", "c.log"] == made_of


def test_a_store_with_a_file_for_each_metric_has_the_gap_between_two_files() -> None:
    files = ("mlruns/0/1/metrics/allocated", "mlruns/0/1/metrics/reserved", "mlruns/0/2/metrics/reserved")
    low, high, other = (frame(name, y, source=place) for name, y, place in zip(
        ("mem_allocated_gib", "mem_reserved_gib", "mem_reserved_gib"), (LEVEL, SLOPE + 2, SLOPE + 9), files, strict=True
    ))  # fmt: skip
    assert series(made(low, high), "mem_reserved_gib").gap_climbs
    assert series(made(low, other), "mem_reserved_gib").gap is None


def test_the_other_half_of_the_same_file_comes_before_that_of_its_folder() -> None:
    own, near = frame("mem_allocated_gib", LEVEL, source="b.csv"), frame("mem_allocated_gib", SLOPE, source="a.csv")
    run = made(near, own, frame("mem_reserved_gib", SLOPE + 2, source="b.csv"))
    assert series(run, "mem_reserved_gib").gap_climbs


def test_two_files_meet_at_their_steps_and_not_at_their_records() -> None:
    late = frame("mem_allocated_gib", SLOPE[50:], steps=STEPS[50:], source="m/allocated")
    gap = series(made(late, frame("mem_reserved_gib", SLOPE + 2, source="m/reserved")), "mem_reserved_gib")
    assert gap.gap_first == pytest.approx(2.0)
    assert gap.gap_last == pytest.approx(2.0)


@pytest.mark.parametrize("seed", range(8))
def test_a_series_is_what_a_table_of_its_rows_gives(seed: int) -> None:
    rng = random.Random(seed)
    steps = [*range(40)] if seed % 2 else [None, *range(40)]
    drawn = [
        (*(rng.choice(cells) for cells in (("a.csv", "b.csv"), *[(None, 0, 1)] * 2, steps)), n) for n in range(300)
    ]
    schema = {"source": pl.String, "attempt": pl.Int32, "rank": pl.Int32, "step": pl.Int64, "seq": pl.Int64}
    values = pl.Series(rng.choices([1.5, 2.5, np.nan, np.inf, 7.25], k=300))
    names = {"name": pl.lit("mem_allocated_gib"), "raw_name": pl.lit("mem")}
    rows = pl.DataFrame(drawn, schema, orient="row").with_columns(value=values, **names)
    told = rows.filter(pl.col("value").is_finite()).with_columns(pl.col("attempt").fill_null(0))
    wanted = {}
    for (source, attempt, rank), part in told.group_by("source", "attempt", "rank", maintain_order=True):
        last = part.unique("step", keep="last", maintain_order=True).sort("step")
        by_step = not part["step"].null_count()
        x, y = (last["step"], last["value"]) if by_step else (pl.Series(range(part.height)), part["value"])
        wanted[source, attempt, rank] = (x.to_list(), y.to_list())
    shuffled = rows.sample(fraction=1, shuffle=True, seed=seed)
    found = {(s.source, s.attempt, s.rank): (s.x.tolist(), s.y.tolist()) for s in series_of(made(shuffled))}
    assert found == wanted


def test_a_million_samples_are_judged_by_blocks() -> None:
    n = 1_000_000
    form = form_of(np.arange(n, dtype=float), 20 + np.arange(n) * 4e-6 + np.random.default_rng(1).normal(0, 0.01, n))
    assert (form.kind, form.samples) == ("slope", n)


@pytest.mark.parametrize(
    "values", [np.full(50, np.nan), np.zeros(0), np.full(50, np.inf), np.full(50, 1e300), np.arange(7.0)]
)
def test_too_few_finite_values_are_unknown(values: np.ndarray) -> None:
    assert form_of(np.arange(len(values), dtype=float), values).kind == "unknown"


@pytest.mark.parametrize("value", [0.0, 1e-30, 1e8, -5.0])
def test_a_constant_is_flat_whatever_it_is(value: float) -> None:
    assert form_of(np.arange(40.0), np.full(40, value)).kind == "flat"


def warm(values: np.ndarray, records: int = 2, share: float = 0.5) -> np.ndarray:
    """The same series with less in its first records, as before the optimizer's states exist."""
    return np.concatenate((values[:records] * share, values[records:]))


@pytest.mark.parametrize(
    ("values", "kind"),
    [(LEVEL, "flat"), (SLOPE, "slope"), (STAIRS, "staircase"), (LEVEL + 2.0 * (STEPS >= 500), "level_shift")],
    ids=["flat", "slope", "staircase", "level shift"],
)
def test_what_the_first_records_lack_is_no_part_of_the_shape(values: np.ndarray, kind: str) -> None:
    form = series(made(frame("mem_allocated_gib", warm(values))), "mem_allocated_gib").form
    assert form.kind == kind
    assert form.warmup >= 2


def test_a_running_maximum_that_grows_behind_a_warm_up_is_growth() -> None:
    grown = np.maximum.accumulate(warm(SLOPE, 1, 0.3))
    assert series(made(frame("mem_peak_gib", grown)), "mem_peak_gib").form.grows
    level = np.maximum.accumulate(warm(LEVEL, 1, 0.3))
    assert not series(made(frame("mem_peak_gib", level)), "mem_peak_gib").form.grows


@pytest.mark.parametrize("printed", [0.0, 0.1, 0.01])
def test_what_fills_up_and_stays_is_no_growth_however_it_is_printed(printed: float) -> None:
    filled = 20 + 4 * (1 - np.exp(-STEPS / 60)) + NOISE
    filled = np.round(filled / printed) * printed if printed else filled
    form = series(made(frame("mem_allocated_gib", filled)), "mem_allocated_gib").form
    assert form.kind in {"flat", "plateau"}
    assert not form.grows


@pytest.mark.parametrize(("third", "kind"), [(30, "staircase"), (31, "plateau")])
def test_three_equal_rises_of_a_maximum_are_stairs_where_their_distances_differ_by_two_records(
    third: int, kind: str
) -> None:
    top = 20 + sum(np.where(np.arange(40) >= at, 0.5, 0.0) for at in (8, 18, third))
    assert form_of(np.arange(40.0), top, cumulative=True).kind == kind


def test_noise_that_wanders_about_a_slope_makes_no_stairs() -> None:
    rng = np.random.default_rng(11)
    kinds: list[str] = []
    for _ in range(12):
        wander = np.zeros(600)
        for i in range(1, 600):
            wander[i] = 0.75 * wander[i - 1] + rng.normal(0, 0.1)
        y = 30 + 6 * np.linspace(0, 1, 600) + wander
        kinds.append(form_of(np.arange(600.0), y).kind)
    assert kinds.count("slope") >= 11


def test_many_teeth_are_a_sawtooth_although_they_look_like_noise_from_afar() -> None:
    rng = np.random.default_rng(5)
    y = 40 + 3 * ((np.arange(1200) / 30) % 1) + rng.normal(0, 0.05, 1200)
    assert form_of(np.arange(1200.0), y).kind == "sawtooth"


def test_what_the_driver_counts_beside_the_reserved_memory_bounds_the_room() -> None:
    run = made(frame("mem_reserved_gib", LEVEL), frame("gpu_mem_used_gib", LEVEL + 2.5))
    (one,) = beside_reserved(run)
    assert (one.used[-1], one.reserved[-1]) == ("gpu_mem_used_gib", "mem_reserved_gib")
    assert one.gib == pytest.approx(2.5, abs=0.05)
    assert capacity_of(run).measured


@pytest.mark.parametrize(("count", "kind"), [(7, "unknown"), (8, "slope")])
def test_eight_samples_have_a_shape(count: int, kind: str) -> None:
    at = np.arange(count, dtype=np.float64)
    assert form_of(at, 10 + at).kind == kind


def test_a_first_sample_after_a_fall_that_lies_low_is_not_the_floor() -> None:
    teeth = [np.concatenate([[10.0 - low], 10 + np.linspace(0.2, 6, 29)]) for low in (0, 4, 0, 4, 0, 4, 0)]
    y = np.concatenate(teeth)
    assert form_of(np.arange(float(len(y))), y).kind == "sawtooth"


@pytest.mark.parametrize("rise", [0.3, 3.0])
def test_a_rise_that_ended_at_half_of_the_series_is_a_plateau_however_small(rise: float) -> None:
    assert form_of(STEPS.astype(float), LEVEL + rise * np.minimum(STEPS / 500, 1)).kind == "plateau"


@pytest.mark.parametrize(
    ("unit", "digits"),
    [
        (1.0, 2),
        (1 / 1024, 0),
        (1e6 / 1.024e9, 0),
        (1e9 / 2**30, 1),
        (1e6 / 2**30, 0),
        (1.0, 4),
    ],
    ids=["GiB", "MiB", "MB of detectron2", "GB", "MB", "GiB of four decimals"],
)
def test_the_unit_in_which_a_memory_was_printed_is_told_by_its_values(unit: float, digits: int) -> None:
    counted = np.array([31_007, 31_009, 31_024, 31_060, 40_001])
    assert printed_unit(counted * unit / 10**digits) == pytest.approx(unit / 10**digits)


def test_values_that_no_unit_divides_were_not_printed() -> None:
    assert printed_unit(31 + np.sqrt(np.arange(1, 40))) == 0
    assert printed_unit(np.full(9, 31.07)) == 0
    assert printed_unit(np.array([1.0, 1.0 + 1e-5, 3.0])) == 0
