"""Slow steps: where they begin, in which form, and what only looks like them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path

import polars as pl
import pytest

from forensics.analyses.pace.account import Gravity, paced, pauses_of, tier_of
from forensics.model import Finding, Severity
from forensics.pipeline import ingest_bytes, ingest_run
from forensics.rules.slowdown.changes import (
    stalls_more_frequent,
    step_time_level_shift,
    step_time_ramp,
    temporary_slowdown,
)
from forensics.rules.slowdown.rhythm import periodic_pauses
from forensics.store.run import Run, run_of
from forensics.values import replace

RULES = (step_time_level_shift, step_time_ramp, stalls_more_frequent, periodic_pauses, temporary_slowdown)


def clock_run(paces: Sequence[float], *, every: int = 10, evals: Sequence[int] = ()) -> Run:
    """Build a run that prints its training clock, one record each `every` steps, and an evaluation at some steps."""
    clock = [
        {"source": "run.log", "seq": i, "step": i * every, "name": "train_time_s", "raw_name": "t", "value": v}
        for i, v in enumerate(accumulate((p * every for p in paces), initial=0.0))
    ]
    rows = [{**clock[0], "step": s, "name": "eval_loss", "raw_name": "e", "value": 1.0} for s in evals]
    return run_of("run", {"metrics": pl.DataFrame([*clock, *rows])})


def printed_run(
    name: str, values: Sequence[float], saves: Sequence[int] = (), end: str = "", **others: Sequence[float]
) -> Run:
    rows = [
        {"source": "run.log", "seq": i, "step": i, "name": key, "raw_name": key, "value": value}
        for key, series in {name: values, **others}.items()
        for i, value in enumerate(series)
    ]
    kept = [{"source": "run.log", "seq": 0, "step": step, "kind": "saved", "path": f"step_{step}"} for step in saves]
    tables = {"metrics": pl.DataFrame(rows)} | ({"checkpoints": pl.DataFrame(kept)} if kept else {})
    if end:
        last = {"source": "run.log", "seq": len(values), "line": len(values) + 1, "code": end, "text": end}
        tables["events"] = pl.DataFrame([last])
    return run_of("run", tables)


def told(run: Run) -> Iterator[Finding]:
    """Every finding about step times that is more than a note."""
    return (f for rule in RULES for f in rule(run) if f.severity is not Severity.INFO)


def found(run: Run) -> list[Finding]:
    return list(told(run))


def noisy(count: int, level: float, seed: int, noise: float = 0.05) -> list[float]:
    chance = random.Random(seed)
    return [level * chance.lognormvariate(0, noise) for _ in range(count)]


def test_the_onset_is_the_first_slow_record_and_the_last_fast_one_bounds_it() -> None:
    [hit] = found(clock_run(noisy(60, 0.2, 1) + noisy(30, 0.5, 2)))
    assert (hit.onset.step_lo, hit.onset.step) == (600, 610)
    assert hit.numbers["ratio"] == pytest.approx(2.5, rel=0.1)


def test_fourteen_records_after_a_threefold_jump_are_a_failure() -> None:
    [hit] = found(clock_run(noisy(100, 0.2, 3) + noisy(14, 0.6, 4)))
    assert (hit.severity, hit.onset.step) == (Severity.ERROR, 1010)


def test_fourteen_records_after_a_rise_by_a_quarter_are_not() -> None:
    assert not found(clock_run(noisy(100, 0.2, 3) + noisy(14, 0.25, 4)))


@pytest.mark.parametrize("count", [5, 7])
def test_a_few_slow_records_at_the_end_are_a_failure_where_the_past_has_no_such_stretch(count: int) -> None:
    [hit] = found(clock_run(noisy(100, 0.2, 5) + noisy(count, 0.9, 6)))
    assert (hit.severity, hit.onset.step) == (Severity.ERROR, 1010)


def test_a_few_slow_records_at_the_end_of_a_run_with_such_bursts_are_one_more_burst() -> None:
    burst = noisy(7, 0.5, 7)
    paces = noisy(40, 0.2, 5) + burst + noisy(50, 0.2, 8) + noisy(7, 0.9, 6)
    assert not found(clock_run(paces))


def test_six_records_before_a_jump_and_six_after_it_suffice_where_both_sides_are_even() -> None:
    [hit] = found(printed_run("step_time", [0.02, *[0.01] * 6, *[0.26] * 6]))
    assert (hit.rule, hit.onset.step) == ("SLO001", 7)


def test_six_records_on_either_side_do_not_suffice_where_one_side_is_uneven() -> None:
    uneven = [0.011, 0.02, 0.012, 0.031, 0.018, 0.013, 0.04, 0.05, 0.033, 0.06, 0.045, 0.03, 0.06]
    assert not found(printed_run("step_time", uneven))


def test_two_rises_by_the_same_seconds_are_a_schedule() -> None:
    assert not found(clock_run(noisy(60, 0.2, 1, 0.01) + noisy(40, 0.35, 2, 0.01) + noisy(60, 0.5, 3, 0.01)))


def test_two_rises_by_other_seconds_are_two_faults() -> None:
    [hit] = found(clock_run(noisy(60, 0.2, 1, 0.01) + noisy(40, 0.35, 2, 0.01) + noisy(60, 0.6, 3, 0.01)))
    assert (hit.rule, hit.onset.step) == ("SLO001", 610)


@pytest.mark.parametrize(("pause_s", "count"), [(0.092, 1), (0.058, 0)])
def test_pauses_that_begin_in_a_short_run_are_told_where_they_cost_as_much_as_eight_steps(
    pause_s: float, count: int
) -> None:
    late = [pause_s if i in {0, 2, 4, 5, 7, 9, 11, 13, 14, 16} else 0.034 for i in range(18)]
    hits = found(printed_run("step_time", [0.038, *noisy(17, 0.034, 1, 0.01), *late]))
    assert [hit.onset.step for hit in hits] == [18] * count


def test_a_second_rise_behind_few_records_is_no_unevenness_of_the_first() -> None:
    [hit] = found(clock_run(noisy(18, 0.034, 1, 0.01) + noisy(19, 0.062, 2, 0.01) + noisy(31, 0.118, 3, 0.01)))
    assert (hit.rule, hit.severity, hit.onset.step) == ("SLO001", Severity.ERROR, 190)


def test_a_burst_shorter_than_the_records_before_it_is_no_second_rise() -> None:
    burst = noisy(20, 0.034, 1, 0.01) + noisy(7, 0.2, 2, 0.01)
    assert not found(clock_run(noisy(12, 0.024, 4, 0.01) + burst + noisy(5, 0.034, 3, 0.01)))


def loaded(count: int, level: float, seed: int) -> list[float]:
    """Times of a machine with another job on it: any step may take longer, none is faster."""
    chance = random.Random(seed)
    return [level * (1 + chance.expovariate(4)) for _ in range(count)]


def test_records_that_spread_upwards_while_the_fastest_stay_are_another_jobs_load() -> None:
    assert not found(printed_run("step_time", noisy(90, 0.2, 1, 0.01) + loaded(60, 0.2, 2)))


def test_records_that_spread_upwards_from_a_higher_level_are_slower() -> None:
    [hit] = found(printed_run("step_time", noisy(90, 0.2, 1, 0.01) + loaded(60, 0.25, 2)))
    assert hit.onset.step == 90


def test_a_climb_from_the_first_record_on_is_told() -> None:
    [hit] = found(printed_run("step_time", [0.2 * (1 + at / 200) for at in range(200)]))
    assert (hit.rule, hit.severity) == ("SLO003", Severity.ERROR)


def test_a_fast_record_just_before_a_jump_belongs_to_the_past_though_one_before_it_was_slow() -> None:
    paces = [*noisy(40, 0.06, 1, 0.25), 0.124, 0.044, *noisy(24, 0.2, 2, 0.2)]
    [hit] = found(printed_run("step_time", paces))
    assert hit.onset.step == 42


def test_a_run_that_recovers_is_told_as_temporary_with_what_it_lost() -> None:
    times = noisy(60, 0.2, 7) + noisy(40, 0.6, 8) + noisy(20, 0.2, 9)
    [hit] = found(printed_run("step_time_s", times, tokens_per_sec=[1000 / t for t in times]))
    assert (hit.cause, hit.severity, hit.onset.step) == ("temporary_slowdown", Severity.WARNING, 60)
    assert hit.numbers["lost"] == pytest.approx(40 * 0.4 / 40, rel=0.1)


@pytest.mark.parametrize(("slow_s", "severity"), [(0.216, "info"), (0.226, "warning")])
def test_a_stretch_less_than_a_tenth_slower_is_a_note_however_long(slow_s: float, severity: str) -> None:
    times = noisy(60, 0.2, 7, 0.005) + noisy(60, slow_s, 8, 0.005) + noisy(60, 0.2, 9, 0.005)
    [hit] = temporary_slowdown(printed_run("step_time_s", times))
    assert hit.severity == severity


def test_slow_first_steps_are_warm_up() -> None:
    assert not found(clock_run([9.0, 2.0, *noisy(40, 0.2, 10)]))


def test_pauses_for_evaluations_are_not_slow_steps() -> None:
    paces = [0.6 if i % 4 == 3 and i > 40 else 0.2 for i in range(80)]
    assert not found(clock_run(paces, evals=[10 * i for i in range(40, 80) if i % 4 == 3]))


@pytest.mark.parametrize(("paused_s", "causes"), [(0.85, ["slow_evaluations"]), (0.65, [])])
def test_evaluations_that_eat_two_fifths_of_the_time_are_a_warning(paused_s: float, causes: list[str]) -> None:
    paces = [t + (paused_s if i % 10 == 9 else 0) for i, t in enumerate(noisy(200, 0.1, 31, 0.01))]
    hits = found(clock_run(paces, evals=[10 * i for i in range(200) if i % 10 == 9]))
    assert [(hit.severity, hit.cause) for hit in hits] == [(Severity.WARNING, cause) for cause in causes]


def test_two_jumps_are_a_slowdown_from_the_first_one_on() -> None:
    [hit] = found(clock_run(noisy(80, 0.1, 11) + noisy(60, 0.166, 12) + noisy(60, 0.276, 13)))
    assert (hit.severity, hit.onset.step) == (Severity.ERROR, 810)
    assert hit.numbers["ratio"] == pytest.approx(2.76, rel=0.05)


def test_even_stairs_are_a_schedule() -> None:
    stairs = [level for step in range(4) for level in noisy(50, 0.1 * 1.3**step, 20 + step, 0.01)]
    assert not found(clock_run(stairs))


def test_a_drift_without_return_begins_where_it_leaves_its_past() -> None:
    flat, drift = noisy(60, 0.1, 15, 0.02), [0.1 * 1.015**i for i in range(80)]
    [hit] = found(clock_run(flat + drift))
    assert hit.cause == "slow_ramp"
    assert hit.onset.step == pytest.approx(610, abs=50)


@pytest.mark.parametrize(("seconds", "cause"), [(1.0, "periodic_pauses"), (0.0, None)])
def test_pauses_that_begin_in_mid_run_are_told_from_the_first_one_on(seconds: float, cause: str | None) -> None:
    times = [t + (seconds if i >= 100 and i % 8 == 4 else 0) for i, t in enumerate(noisy(200, 0.1, 16))]
    hits = found(printed_run("step_time_s", times))
    assert [(f.cause, f.onset.step) for f in hits] == ([(cause, 100)] if cause else [])


def test_pauses_all_along_do_not_begin() -> None:
    times = [t + (1.0 if i % 8 == 4 else 0) for i, t in enumerate(noisy(200, 0.1, 17))]
    assert [f.rule for f in told(printed_run("step_time_s", times))] == ["SLO005"]


@pytest.mark.parametrize(
    ("pause_s", "usual_s", "told_as"),
    [(2.2, 1.0, ["SLO005"]), (1.7, 1.0, []), (0.22, 0.1, [])],
    ids=["a fifth of the time, and minutes", "less than a fifth", "a fifth of half a minute"],
)
def test_unexplained_pauses_are_a_loss_from_a_fifth_of_the_time_on(
    pause_s: float, usual_s: float, told_as: list[str]
) -> None:
    times = [t + (pause_s if i % 8 == 4 else 0) for i, t in enumerate(noisy(240, usual_s, 17))]
    assert [f.rule for f in told(printed_run("step_time_s", times))] == told_as


@pytest.mark.parametrize(("pause", "told_as"), [(8.0, Severity.ERROR), (2.0, Severity.WARNING), (1.0, None)])
def test_saves_that_eat_the_time_are_a_failure_though_the_next_record_holds_them(
    pause: float, told_as: Severity | None
) -> None:
    times = [t + (pause if i % 20 == 1 and i > 1 else 0) for i, t in enumerate(noisy(200, 0.2, 18))]
    hits = found(printed_run("step_time_s", times, saves=range(20, 200, 20)))
    assert [(f.severity, f.cause) for f in hits] == ([(told_as, "periodic_pauses")] if told_as else [])


@pytest.mark.parametrize(("first", "causes"), [(0, []), (5, ["periodic_pauses"])])
def test_a_time_that_is_printed_at_the_first_batch_of_an_epoch_is_of_one_batch(
    tmp_path: Path, first: int, causes: list[str]
) -> None:
    """Meters begin anew with each epoch; printed later in it, the time is of all batches since the line before."""
    chance, lines = random.Random(5), list[str]()
    for epoch in range(1, 31):
        for batch in range(first, 80, 10):
            seconds = 4.5 if batch == first else 0.64 + chance.gauss(0, 0.01)
            loss = 2 / epoch + chance.random() / 100
            lines.append(f"Epoch: [{epoch}/30] Iter:[{batch}/80], Time: {seconds:.2f}, Loss: {loss:.4f}")
        lines.append(f"=> saving checkpoint to out/epoch_{epoch}.pth")
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    assert [f.cause for f in found(ingest_run(tmp_path))] == causes


@pytest.mark.parametrize(
    ("extra", "causes"), [(0.0, ["slow_evaluations"]), (6.0, ["periodic_pauses"]), (None, ["periodic_pauses"])]
)
def test_what_an_evaluation_costs_elsewhere_is_no_price_of_the_save_beside_it(
    extra: float | None, causes: list[str]
) -> None:
    """Where each evaluation comes with a save (`extra` None), nothing tells the two apart."""
    saves = range(20, 200, 20)
    evals = saves if extra is None else range(10, 200, 10)
    times = noisy(200, 0.2, 18)
    for step in evals:
        times[step] += 3.0 + ((extra or 0.0) if step in saves else 0.0)
    scores = [
        {"source": "run.log", "seq": s, "step": s, "name": "eval_loss", "raw_name": "e", "value": 1.0} for s in evals
    ]
    run = printed_run("step_time_s", times, saves=saves)
    metrics = pl.concat([run.scan("metrics").collect(), pl.DataFrame(scores)], how="diagonal_relaxed")
    hits = found(run_of("run", {"metrics": metrics, "checkpoints": run.scan("checkpoints").collect()}))
    assert [f.cause for f in hits] == causes


def test_one_printed_digit_is_not_a_doubling() -> None:
    assert not found(printed_run("step_time_s", [0.01] * 20 + [0.02] * 20))


def test_longer_steps_with_the_same_throughput_are_not_slower() -> None:
    times = noisy(30, 0.2, 16) + noisy(30, 0.6, 17)
    assert not found(printed_run("step_time_s", times, tokens_per_sec=noisy(60, 5000.0, 18)))
    assert found(printed_run("step_time_s", times, tokens_per_sec=[5000.0] * 30 + [1700.0] * 30))


def test_a_throughput_that_fell_twice_is_compared_at_the_last_level() -> None:
    times = noisy(30, 0.033, 17) + noisy(20, 0.06, 18) + noisy(14, 0.14, 19)
    [hit] = found(printed_run("step_time_s", times, tokens_per_sec=[128 / t for t in times]))
    assert hit.onset.step == 30
    assert not found(printed_run("step_time_s", times, tokens_per_sec=noisy(64, 5000.0, 20)))


@pytest.mark.parametrize("work", ["num_tokens_step", "seq_len"])
def test_twice_the_time_for_twice_the_work_is_not_slower(work: str) -> None:
    times, more = noisy(30, 0.2, 16) + noisy(30, 0.4, 17), [512.0] * 30 + [1024.0] * 30
    assert not found(printed_run("step_time_s", times, **{work: more}))
    assert found(printed_run("step_time_s", times, **{work: [512.0] * 60}))


@pytest.mark.parametrize(("longer", "slower"), [(1024.0, False), (512.0, True)])
def test_time_stamps_beside_longer_sequences_are_not_slower(longer: float, slower: bool) -> None:
    paces = noisy(60, 2.0, 18, 0.01) + noisy(60, 4.0, 19, 0.01)
    stamps = [round(at * 1e9) for at in accumulate(paces)]
    series = {"loss": [3.0 - i / 100 for i in range(120)], "seq_len": [512.0] * 60 + [longer] * 60}
    rows = [
        {"source": "run.log", "seq": i, "step": i, "name": key, "raw_name": key, "value": value, "t_ns": stamp}
        for key, values in series.items()
        for i, (value, stamp) in enumerate(zip(values, stamps, strict=True))
    ]
    assert bool(found(run_of("run", {"metrics": pl.DataFrame(rows)}))) is slower


def test_a_changed_log_interval_is_not_slower() -> None:
    clock = [0.2 * step for step in [*range(40), *range(40, 400, 10)]]
    steps = [*range(40), *range(40, 400, 10)]
    rows = [
        {"source": "run.log", "seq": i, "step": s, "name": "train_time_s", "raw_name": "t", "value": v}
        for i, (s, v) in enumerate(zip(steps, clock, strict=True))
    ]
    assert not found(run_of("run", {"metrics": pl.DataFrame(rows)}))


def test_time_stamps_to_the_second_are_a_clock_over_many_steps() -> None:
    now, rows = 0.0, []
    for step in range(1200):
        now += 0.8 if step < 700 else 2.4
        stamp = int(now) * 1_000_000_000
        one = {"source": "run.log", "seq": step, "step": step, "name": "loss", "raw_name": "loss"}
        rows.append({**one, "value": 2.0, "t_ns": stamp})
    [hit] = found(run_of("run", {"metrics": pl.DataFrame(rows)}))
    assert hit.onset.step == pytest.approx(700, abs=100)


@pytest.mark.parametrize(
    ("name", "words"),
    [("tokens_per_sec", "tokens per second"), ("tokens_per_sec_per_device", "tokens per device per second")],
)
def test_a_throughput_alone_is_a_clock(name: str, words: str) -> None:
    [hit] = found(printed_run(name, noisy(30, 5000.0, 19) + noisy(30, 1500.0, 20)))
    assert hit.onset.step == 30
    assert hit.title.startswith(f"{words} fell from 4,945 to 1,487")


@pytest.mark.parametrize("seed", range(40))
def test_a_steady_run_with_heavy_noise_is_silent(seed: int) -> None:
    chance = random.Random(seed)
    paces = [p * (4 if chance.random() < 0.05 else 1) for p in noisy(chance.randint(5, 300), 0.2, seed, 0.2)]
    assert not found(clock_run(paces))


def test_a_jump_is_found_to_the_record_on_a_machine_that_is_shared() -> None:
    chance = random.Random(5)
    busy = [1 + (chance.expovariate(1.0) if chance.random() < 0.4 else 0) for _ in range(160)]
    [hit] = found(printed_run("step_time_s", [b * (0.1 if i < 90 else 0.25) for i, b in enumerate(busy)]))
    assert hit.onset.step == pytest.approx(90, abs=2)


def test_a_rate_that_was_once_zero_is_read_without_that_record() -> None:
    rates = [*noisy(60, 5000.0, 19), 0.0, *noisy(60, 5000.0, 21), *noisy(60, 1500.0, 20)]
    assert [f.onset.step for f in found(printed_run("tokens_per_sec", rates))] == [121]


def test_pauses_at_saves_that_were_free_before_are_pauses_that_begin() -> None:
    pauses = [0.30 if at > 60 and at % 10 == 2 else 0.05 for at in range(160)]
    [hit] = found(printed_run("step_time", pauses, saves=range(21, 160, 20)))
    assert (hit.rule, hit.onset.step) == ("SLO030", 62)


@pytest.mark.parametrize(
    ("end", "since", "is_told"), [("success", 1140, False), ("", 1140, True), ("success", 900, True)]
)
def test_pauses_that_cost_little_of_a_run_that_came_to_its_end_are_a_note(end: str, since: int, is_told: bool) -> None:
    times = [t + (0.15 if i >= since and i % 4 == 2 else 0.0) for i, t in enumerate(noisy(1200, 0.1, 8))]
    assert bool(found(printed_run("step_time", times, end=end))) is is_told


def test_pauses_at_saves_from_the_first_one_on_are_what_a_save_costs() -> None:
    pauses = [0.30 if at and at % 20 == 2 else 0.05 for at in range(160)]
    assert not found(printed_run("step_time", pauses, saves=range(1, 160, 20)))


def test_a_step_time_of_two_digits_gives_way_to_a_throughput() -> None:
    paces = [0.031] * 60 + [0.039] * 60
    run = printed_run(
        "step_time", [round(pace, 2) for pace in paces], **{"tok/s": [round(128 / pace) for pace in paces]}
    )
    [hit] = found(run)
    assert (hit.rule, hit.onset.step, hit.numbers["ratio"]) == ("SLO001", 60, pytest.approx(0.039 / 0.031, rel=0.02))


def test_of_a_small_rise_and_pauses_that_begin_with_it_the_pauses_are_told() -> None:
    times = [
        t * (1.1 if i > 78 else 1.0) + (0.9 if i > 78 and i % 7 == 2 else 0.0)
        for i, t in enumerate(noisy(160, 0.1, 31))
    ]
    [hit] = found(printed_run("step_time_s", times))
    assert (hit.rule, hit.onset.step) == ("SLO030", 79)


def test_a_rise_that_costs_more_than_the_pauses_beside_it_is_told() -> None:
    times = [
        t * (3.0 if i > 78 else 1.0) + (0.2 if i > 78 and i % 7 == 2 else 0.0)
        for i, t in enumerate(noisy(160, 0.1, 32))
    ]
    assert found(printed_run("step_time_s", times))[0].rule == "SLO001"


def test_a_checkpoint_on_disk_was_saved_at_its_step() -> None:
    run = printed_run("step_time_s", [t + (8.0 if i in {51, 101} else 0.0) for i, t in enumerate(noisy(140, 0.2, 33))])
    left = [{"source": f"out/step_{at}.pt", "seq": 0, "step": at, "kind": "directory"} for at in (50, 100)]
    rows = pl.DataFrame(left).with_columns(path=pl.col("source"))
    [hit] = found(run_of("run", {"metrics": run.collect("metrics"), "checkpoints": rows}))
    assert (hit.rule, hit.numbers["saves"]) == ("SLO005", 2)


@pytest.mark.parametrize(("pause_s", "rules"), [(1.1, ["SLO005"]), (0.9, [])])
def test_saves_that_cost_seconds_in_a_job_of_seconds_are_no_slow_storage(pause_s: float, rules: list[str]) -> None:
    times = [t + (pause_s if i in {51, 101} else 0.0) for i, t in enumerate(noisy(140, 0.02, 33))]
    run = printed_run("step_time_s", times)
    saved = [{"source": f"out/step_{at}.pt", "seq": 0, "step": at, "kind": "directory"} for at in (50, 100)]
    rows = pl.DataFrame(saved).with_columns(path=pl.col("source"))
    assert [f.rule for f in found(run_of("run", {"metrics": run.collect("metrics"), "checkpoints": rows}))] == rules


def test_a_time_that_is_of_one_iteration_stands_for_no_other(tmp_path: Path) -> None:
    """nanoGPT prints every tenth iteration with its own time; of a mean over ten, a pause would weigh tenfold."""
    rng = random.Random(5)
    lines: list[str] = []
    for step in range(0, 5001, 10):
        pause = step and step % 250 == 0
        if pause:
            lines += [f"step {step}: train loss 1.2000, val loss 1.5000", "saving checkpoint to out"]
        time = 4012.0 if pause else 92 + rng.gauss(0, 0.5)
        lines.append(f"iter {step}: loss {1 + 3 / (1 + step / 500):.4f}, time {time:.2f}ms, mfu 12.01%")
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    assert [p.share for _, p in pauses_of(ingest_run(tmp_path))] == [pytest.approx(0.15, abs=0.01)]


def test_the_time_between_two_attempts_is_no_pause(tmp_path: Path) -> None:
    stamp = "2026-01-02 03:{0:02d}:{1:02d}.000 step {2} loss {3:.3f}"
    lines = [stamp.format(n // 12, 5 * (n % 12), n, 3 - n / 100) for n in range(1, 141)]
    gone = "resumed from checkpoints/step_60 at step 60"
    late = [line.replace("2026-01-02 03:", "2026-01-02 05:") for line in lines[60:]]
    (tmp_path / "train.log").write_text("\n".join([*lines[:60], "saved checkpoints/step_60", gone, *late]) + "\n")
    assert not found(ingest_run(tmp_path))
    (tmp_path / "train.log").write_text("\n".join([*lines[:60], "saved checkpoints/step_60", *late]) + "\n")
    assert max(p.saving for _, p in pauses_of(ingest_run(tmp_path))) > 0.5


def tier(z: float, times: Sequence[float]) -> str:
    """How grave a change is that stands `z` deviations out."""
    [one] = paced(printed_run("step_time_s", times))
    assert one.change is not None
    return tier_of(one, replace(one.change, z=z), Gravity())


def test_of_a_level_that_stands_less_far_out_the_fastest_records_decide() -> None:
    twice = noisy(60, 0.1, 41) + noisy(60, 0.2, 42)
    third = noisy(60, 0.2, 43) + noisy(60, 0.28, 44)
    assert [tier(z, twice) for z in (6.0, 4.5, 4.4)] == ["grave", "grave", "note"]
    assert [tier(z, third) for z in (6.0, 4.5)] == ["grave", "note"]


@pytest.mark.parametrize(
    ("after_s", "noise", "seed", "tier_of_it"),
    [(1.35, 0.1, 63, "note"), (1.42, 0.11, 63, "grave"), (1.32, 0.08, 66, "note"), (1.32, 0.08, 64, "grave")],
    ids=["2.96 times as far", "3.13 times as far", "by 1.297", "by 1.355"],
)
def test_a_few_records_that_are_all_slower_by_a_third_need_three_times_what_stretches_do(
    after_s: float, noise: float, seed: int, tier_of_it: str
) -> None:
    assert tier(9.0, noisy(36, 1.0, seed, noise) + noisy(13, after_s, seed + 100, noise)) == tier_of_it


@pytest.mark.parametrize(("fast_s", "tier_of_it"), [(1.2, "note"), (1.4, "grave")])
def test_a_few_records_of_which_some_are_hardly_slower_are_not_all_slower(fast_s: float, tier_of_it: str) -> None:
    slow, fast = noisy(15, 1.45, 161, 0.03), noisy(15, fast_s, 261, 0.02)
    late = [fast[at] if at % 4 == 3 else slow[at] for at in range(15)]
    assert tier(9.0, noisy(36, 1.0, 61, 0.03) + late) == tier_of_it


@pytest.mark.parametrize(("records", "tier_of_it"), [(7, "note"), (8, "grave")])
def test_eight_records_are_the_fewest_that_are_all_slower(records: int, tier_of_it: str) -> None:
    assert tier(9.0, noisy(36, 1.0, 61, 0.02) + noisy(records, 1.4, 161, 0.02)) == tier_of_it


@pytest.mark.parametrize(("after_s", "tier_of_it"), [(0.148, "mild"), (0.153, "grave")])
def test_a_loss_of_three_seconds_in_all_is_grave(after_s: float, tier_of_it: str) -> None:
    assert tier(9.0, [0.1] * 60 + [after_s] * 60) == tier_of_it


@pytest.mark.parametrize(("every", "steps", "severity"), [(50, 16, Severity.WARNING), (20, 6, None), (50, 10, None)])
def test_saves_that_are_as_long_as_many_steps_are_a_warning_below_what_is_an_error(
    every: int, steps: int, severity: Severity | None
) -> None:
    times = [t + (0.2 * steps if i % every == 1 and i > 1 else 0) for i, t in enumerate(noisy(210, 0.2, 51))]
    hits = found(printed_run("step_time_s", times, saves=range(every, 210, every)))
    assert [f.severity for f in hits] == ([severity] if severity else [])


@pytest.mark.parametrize(("told_of", "cause"), [(4, "recompiles"), (3, "stalls")])
def test_stalls_beside_many_recompilations_are_theirs(told_of: int, cause: str) -> None:
    times = noisy(150, 0.5, 3, 0.01)
    for place in (78, 80, 87, 91, 93, 99, 109, 113, 115, 119, 122, 123, 125, 126, 128, 130, 131, 136, 138, 143, 149):
        times[place] = 3.0
    lines = [
        {"source": "run.log", "seq": n, "line": n, "code": "dynamo-recompile", "text": "x"} for n in range(told_of)
    ]
    run = printed_run("step_time", times)
    both = run_of("run", {"metrics": run.collect("metrics"), "events": pl.DataFrame(lines)})
    assert [f.cause for f in stalls_more_frequent(both)] == [cause]


@pytest.mark.parametrize(
    ("factor", "first", "told"),
    [(1.9, 50, ("transient", True)), (1.9, 60, ("transient", True)), (1.4, 50, ("lasting", False))],
)
def test_a_slow_stretch_in_noise_is_told_by_its_blocks_although_the_level_behind_it_is_a_bit_higher(
    factor: float, first: int, told: tuple[str, bool]
) -> None:
    before, slow, behind = noisy(first, 1.0, 51, 0.15), noisy(40, factor, 52, 0.15), noisy(40, 1.06, 53, 0.15)
    [one] = paced(printed_run("step_time_s", before + slow + behind))
    assert one.change is not None
    assert (one.change.kind, one.change.parted) == told


def stalling(count: int, slow_s: float, *, until: int = 600) -> Run:
    """600 steps of half a second, and some longer ones at places of no period, below a step."""
    times, chance = noisy(600, 0.5, 7, 0.01), random.Random(11)
    for place in sorted(chance.sample(range(40, until), count)):
        times[place] = slow_s
    return printed_run("step_time_s", times)


@pytest.mark.parametrize(
    ("count", "slow_s", "until", "told"),
    [(36, 5.0, 600, True), (36, 3.0, 600, False), (9, 25.0, 600, False), (36, 5.0, 290, False)],
)
def test_stalls_all_along_are_told_where_they_are_many_and_take_three_tenths_of_the_time(
    count: int, slow_s: float, until: int, told: bool
) -> None:
    every = stalls_more_frequent(stalling(count, slow_s, until=until))
    said = [f for f in every if "at no regular distance" in f.title]
    assert bool(said) is told
    assert all((f.severity, f.cause) == (Severity.WARNING, "stalls") for f in said)


@pytest.mark.parametrize(("told_of", "cause"), [(15, "recompiles"), (14, "periodic_pauses"), (5, "periodic_pauses")])
def test_pauses_that_begin_are_of_the_recompilations_where_these_are_half_as_many(told_of: int, cause: str) -> None:
    times = [t + 5.8 * (i > 40 and i % 6 == 0) for i, t in enumerate(noisy(222, 0.4, 3, 0.01))]
    lines = [
        {"source": "run.log", "seq": n, "line": n, "code": "dynamo-recompile", "text": "x"} for n in range(told_of)
    ]
    run = printed_run("step_time_s", times)
    both = run_of("run", {"metrics": run.collect("metrics"), "events": pl.DataFrame(lines)})
    assert [f.cause for f in stalls_more_frequent(both)] == [cause]


def _epochs(batch: str, epoch: str) -> str:
    chance, lines = random.Random(6), list[str]()
    for e in range(1, 45):
        took = (390 if e < 29 else 1200) * chance.uniform(0.99, 1.01)
        lines += [batch.format(e=e, i=i, v=2 * 0.97**e) for i in range(100, 1401, 200)] if batch else []
        lines.append(epoch.format(e=e, v=2 * 0.97**e, t=took))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("batch", "epoch", "whole"),
    [
        ("", "Epoch {e}/200 loss {v:.4f} time {t:.1f}s", "an epoch takes 1,2"),
        ("epoch {e} iter {i}/1400 loss {v:.4f}", "Epoch {e} took {t:.1f}s", "an epoch takes 1,2"),
        ("(epoch: {e}, iters: {i}, time: 0.27) D: {v:.3f}", "End of epoch {e} / 20 \t Time Taken: {t:.0f} sec", "an e"),
        ("epoch {e} iter {i}/1400 loss {v:.4f}", "Epoch {e} mean, time/step {t:.1f}s", "a step takes 1,2"),
    ],
)
def test_a_time_that_comes_once_in_each_epoch_is_of_an_epoch(batch: str, epoch: str, whole: str) -> None:
    [hit] = step_time_level_shift(ingest_bytes("train.log", _epochs(batch, epoch).encode()))
    assert hit.title.startswith(whole), hit.title
    assert hit.numbers["ratio"] == pytest.approx(3.08, rel=0.01)


def test_a_time_that_comes_twice_in_an_epoch_is_none_of_an_epoch() -> None:
    lines = list[str]()
    for half in range(2, 90):
        lines += [
            f"epoch {half // 2} iter {700 * (half % 2) + i}/1400 loss {2 * 0.98**half:.4f}"
            for i in range(100, 701, 100)
        ]
        lines.append(f"Epoch {half // 2} took {(190 if half < 50 else 600) + half % 3:.1f}s")
    [hit] = step_time_level_shift(ingest_bytes("train.log", ("\n".join(lines) + "\n").encode()))
    assert hit.title.startswith("a step takes "), hit.title


def test_the_time_between_records_is_of_a_step_though_one_comes_in_each_epoch() -> None:
    second, lines = 0, list[str]()
    for epoch in range(1, 81):
        second += (2800 if epoch < 40 else 8400) + epoch % 5
        day, clock = 1 + second // 86400, f"{second // 3600 % 24:02}:{second // 60 % 60:02}:{second % 60:02}"
        lines.append(f"2026-03-{day:02} {clock} epoch {epoch} step {1400 * epoch} loss {2 * 0.98**epoch:.4f}")
    [hit] = step_time_level_shift(ingest_bytes("train.log", ("\n".join(lines) + "\n").encode()))
    assert hit.title.startswith("a step takes 6 s instead of 2 s"), hit.title
