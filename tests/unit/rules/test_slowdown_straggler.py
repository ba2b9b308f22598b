from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest

from forensics import pipeline
from forensics.diagnosis.verdict import decide
from forensics.model import Coverage, Finding
from forensics.rules.slowdown.changes import step_time_level_shift
from forensics.rules.slowdown.straggler import straggling_rank
from forensics.store.run import Run, run_of


def job(data_s: dict[int, list[float]], step_s: list[float]) -> Run:
    """A job whose ranks print their loader's time and the whole step's, the latter alike on all."""
    rng = random.Random(4)
    rows = [
        (step, rank, name, value)
        for step, whole in enumerate(step_s)
        for rank, waits in data_s.items()
        for name, value in (
            ("loss", 4.0 - 0.01 * step),
            ("data_time", waits[step]),
            ("step_time_s", whole + rng.uniform(0, 0.001)),
        )
    ]
    frame = pl.DataFrame(rows, schema=["step", "rank", "name", "value"], orient="row").with_columns(
        source=pl.lit("train.log"), raw_name=pl.col("name"), seq=pl.int_range(pl.len()), line=pl.int_range(pl.len()) + 1
    )
    return run_of("job", {"metrics": frame})


def found(run: Run) -> list[Finding]:
    return [*straggling_rank(run), *step_time_level_shift(run)]


def test_a_rank_that_turns_slow_half_way_is_named_with_the_step_although_others_take_no_time_at_all() -> None:
    late = [0.0] * 60 + [0.35] * 60
    run = job({0: [0.0] * 120, 1: late, 2: [0.0] * 120, 3: [0.0] * 120}, [0.05 + t for t in late])
    (hit,) = straggling_rank(run)
    assert (hit.culprits, hit.onset.step, hit.severity.value) == ((1,), 60, "error")


def test_the_rank_is_the_cause_of_the_slower_steps_of_all() -> None:
    late = [0.0] * 60 + [0.35] * 60
    run = job({0: [0.0] * 120, 1: late, 2: [0.0] * 120}, [0.05 + t for t in late])
    findings = found(run)
    assert {f.rule for f in findings} == {"SLO006", "SLO001"}
    verdict = decide(findings, run, Coverage())
    assert (verdict.cause, verdict.culprits) == ("straggler", (1,))


def test_a_difference_that_is_nothing_beside_the_step_is_no_straggler() -> None:
    run = job({0: [0.0010] * 80, 1: [0.0020] * 80, 2: [0.0010] * 80}, [0.5] * 80)
    assert list(straggling_rank(run)) == []


def test_a_rank_that_is_slow_now_and_then_is_no_straggler() -> None:
    now = [0.3 if step % 10 == 0 else 0.0 for step in range(120)]
    run = job({0: [0.0] * 120, 1: now, 2: [0.0] * 120}, [0.4] * 120)
    assert list(straggling_rank(run)) == []


def at_other_onset(slow_from: int, other_from: int, times: float = 3.0) -> list[str]:
    """The cause where one of two ranks turns slow at a step, and the steps of both from another one on."""
    late = [0.05 if step < slow_from else 0.30 for step in range(160)]
    run = job({0: [0.05] * 160, 1: late}, [0.1 if step < other_from else 0.1 * times for step in range(160)])
    verdict = decide(found(run), run, Coverage())
    return [verdict.cause, *map(str, verdict.culprits)]


def test_a_rank_that_explains_the_lost_time_leads_where_its_onset_is_placed_elsewhere() -> None:
    assert at_other_onset(slow_from=90, other_from=70) == ["straggler", "1"]


def test_a_rank_that_explains_little_of_the_lost_time_does_not_lead() -> None:
    assert at_other_onset(slow_from=90, other_from=70, times=20.0) == ["slow_steps"]


def test_a_rank_that_was_slow_all_along_does_not_explain_a_jump_in_mid_run() -> None:
    assert at_other_onset(slow_from=0, other_from=80) == ["slow_steps"]


def test_a_rank_is_measured_by_seconds_where_its_name_says_milliseconds() -> None:
    run = job({0: [0.004] * 120, 1: [0.030] * 120, 2: [0.004] * 120}, [0.037] * 120)
    frame = run.scan("metrics").collect()
    raw = pl.col("raw_name").replace({"data_time": "load_ms", "step_time_s": "iter_ms"})
    known = pl.col("name").replace({"data_time": "data_time_s"})
    renamed = run_of("job", {"metrics": frame.with_columns(raw_name=raw, name=known)})
    assert [hit.culprits for hit in straggling_rank(renamed)] == [(1,)]


@pytest.mark.parametrize(
    ("names", "culprits"),
    [
        ("t_rechnen_ms\tt_warten_ms", (1,)),
        ("temps_calcul_ms\tattente_ms", (1,)),
        ("t_fwd_ms\tt_wait_ms", (1,)),
        ("perf/data_wait_ms\tt_wait_ms", (1,)),
        ("zahl_eins\tzahl_zwei", ()),
    ],
)
def test_the_parts_of_a_step_are_told_in_any_language(tmp_path: Path, names: str, culprits: tuple[int, ...]) -> None:
    rng = random.Random(6)
    for rank in range(3):
        rows = [f"step\tloss\t{names}"]
        for step in range(1, 121):
            late = 20.0 if step > 50 else 0.0
            own, wait = (12 + late, 3.0) if rank == 1 else (12.0, 3 + late)
            numbers = [own + rng.uniform(0, 0.5), wait + rng.uniform(0, 0.5)]
            rows.append("\t".join([str(step), f"{2 - step / 100:.4f}", *(f"{number:.2f}" for number in numbers)]))
        (tmp_path / f"times_rank{rank}.tsv").write_text("\n".join(rows) + "\n")
    report = pipeline.report_of(pipeline.ingest_run(tmp_path))
    assert report.verdict.culprits == culprits


def _clocks(*slow: int) -> str:
    head = "timestamp, index, temperature.gpu, clocks.current.sm [MHz], utilization.gpu [%]\n"
    rows = [
        f"2025/07/02 13:{at:02d}:00.000, {gpu}, {92 if late else 66}, {1005 if late else 1980} MHz, 99 %\n"
        for at in range(60)
        for gpu in range(4)
        for late in (gpu in slow and at >= 30,)
    ]
    return head + "".join(rows)


@pytest.mark.parametrize(("slow", "culprits"), [((3,), (3,)), ((2, 3), ()), ((), ())])
def test_the_only_device_whose_clock_fell_is_why_steps_are_slow(
    tmp_path: Path, slow: tuple[int, ...], culprits: tuple[int, ...]
) -> None:
    rng = random.Random(8)
    steps = [
        f"step {n} loss {2 - n / 400:.4f} step_time {(0.6 if n > 200 else 0.4) + rng.uniform(0, 0.004):.3f}s"
        for n in range(1, 401)
    ]
    (tmp_path / "train.log").write_text("\n".join([*steps, "training finished"]) + "\n")
    (tmp_path / "gpus.csv").write_text(_clocks(*slow))
    verdict = pipeline.report_of(pipeline.ingest_run(tmp_path)).verdict
    assert (verdict.culprits, verdict.onset.step) == (culprits, 201)
    assert (verdict.cause == "thermal_throttling") is bool(culprits)


def whole_times(sources: tuple[str, ...], slow: float) -> Run:
    """Step times of four ranks, the last of which takes `slow` times as long, in so many files."""
    rng = random.Random(8)
    rows = [
        (sources[rank % len(sources)], step, rank, 0.4 * (slow if rank == 3 else 1) + rng.uniform(0, 0.002))
        for step in range(80)
        for rank in range(4)
    ]
    frame = pl.DataFrame(rows, schema=["source", "step", "rank", "value"], orient="row").with_columns(
        name=pl.lit("step_time_s"), raw_name=pl.lit("step_time"), seq=pl.int_range(pl.len())
    )
    return run_of("job", {"metrics": frame})


def test_whole_times_that_one_process_has_of_all_ranks_name_the_slow_one() -> None:
    (hit,) = straggling_rank(whole_times(("all.csv",), 1.2))
    assert hit.culprits == (3,)
    assert list(straggling_rank(whole_times(("all.csv",), 1.04))) == []
    assert list(straggling_rank(whole_times(("all.csv",), 0.8))) == []  # for a fast one nobody waits


def test_whole_times_that_each_rank_takes_by_its_own_clock_name_nobody() -> None:
    assert list(straggling_rank(whole_times(("0.csv", "1.csv", "2.csv", "3.csv"), 1.2))) == []
