"""Slowdowns by shape: lost time gives the severity, in whatever form it is lost; the form gives only the words."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from forensics.model import Outcome, Shape, Verdict
from tests.unit.truth._runs import DONE, judged, said

BEGIN = datetime(2026, 5, 1, 10, tzinfo=UTC)
SLOW = {Outcome.FAILED, Outcome.SUSPECT}


def noisy(seconds: Callable[[int], float], steps: int, seed: int = 1) -> list[float]:
    """Times of steps with 3 % of noise."""
    rng = random.Random(seed)
    return [seconds(at) * (1 + rng.gauss(0, 0.03)) for at in range(1, steps + 1)]


def stamped(times: Iterable[float], saves: Iterable[int] = (), save_s: float = 0.0, beside: str = "") -> list[str]:
    """Records with the wall time at which each step ended, and the lines of saves behind some of them."""
    rng, lines, now, saved = random.Random(2), list[str](), BEGIN, set(saves)
    for at, took in enumerate(times, 1):
        now += timedelta(seconds=took)
        loss = 3 - 0.004 * at + 0.02 * rng.random()
        lines.append(f"{shown(now)} step {at} | loss {loss:.4f}{beside.format(rate=8192 / took)}")
        if at in saved:
            lines.append(f"{shown(now)} saving checkpoint to out/step_{at}")
            now += timedelta(seconds=save_s)
    return [*lines, DONE]


def shown(now: datetime) -> str:
    return f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03d}"


def is_slow(verdict: Verdict) -> bool:
    return verdict.outcome in SLOW and verdict.shape is Shape.SLOWDOWN


def cuts(*levels: float) -> Callable[[int], float]:
    return lambda at: levels[min(len(levels) - 1, (at - 1) // 120)]


@pytest.mark.parametrize(
    ("levels", "slow"),
    [
        ((0.5, 0.75, 1.38), True),  # two faults
        ((0.5, 0.94, 1.38), False),  # twice the same seconds: two stages of a schedule
        ((0.5, 0.5, 0.5), False),
    ],
)
def test_two_cuts_are_told_with_the_whole_loss(levels: Sequence[float], *, slow: bool, tmp_path: Path) -> None:
    verdict = said(tmp_path, stamped(noisy(cuts(*levels), 360)))
    assert is_slow(verdict) is slow
    assert not slow or verdict.onset.step == pytest.approx(121, abs=2)


@pytest.mark.parametrize(("factor", "slow"), [(3.0, True), (1.05, False)])
def test_fourteen_records_after_a_jump_to_three_times_suffice(factor: float, *, slow: bool, tmp_path: Path) -> None:
    verdict = said(tmp_path, stamped(noisy(lambda at: 0.5 * (factor if at > 200 else 1), 214)))
    assert is_slow(verdict) is slow


@pytest.mark.parametrize(("pause", "slow"), [(6.5, True), (0.05, False)])
def test_pauses_that_begin_in_the_middle_are_a_slowdown(pause: float, *, slow: bool, tmp_path: Path) -> None:
    times = noisy(lambda at: 0.5 + (pause if at > 150 and at % 10 == 0 else 0), 300)
    verdict = said(tmp_path, stamped(times))
    assert is_slow(verdict) is slow
    assert not slow or verdict.onset.step == pytest.approx(155, abs=6)


@pytest.mark.parametrize(("factor", "slow"), [(3.0, True), (1.0, False)])
def test_a_progress_bar_is_a_clock(factor: float, *, slow: bool, tmp_path: Path) -> None:
    frames, now = list[str](), 0.0
    for at in range(1, 401):
        took = 0.5 * (factor if at >= 200 else 1)
        now += took
        clock = f"{int(now) // 60:02d}:{int(now) % 60:02d}"
        frames.append(f"\rTraining: {at // 4}%|###   | {at}/400 [{clock}<10:00, {1 / took:.2f}it/s]")
    verdict = judged(tmp_path, {"train.err": "".join(frames) + f"\n{DONE}\n"}).verdict
    assert is_slow(verdict) is slow


@pytest.mark.parametrize(("save_s", "slow"), [(10.0, True), (0.2, False)])
def test_saves_that_eat_two_thirds_of_the_time_are_told_as_saves(save_s: float, *, slow: bool, tmp_path: Path) -> None:
    lines = stamped(noisy(lambda _: 0.5, 200), saves=range(10, 201, 10), save_s=save_s)
    verdict = said(tmp_path, lines)
    assert is_slow(verdict) is slow
    assert not slow or "aving checkpoints takes" in verdict.headline


@pytest.mark.parametrize("beside", ["", " | tok/s {rate:.0f}"])
@pytest.mark.parametrize(("factor", "slow"), [(3.0, True), (1.04, False)])
def test_a_slowdown_that_came_back_is_told_whether_or_not_a_rate_is_printed(
    factor: float, beside: str, *, slow: bool, tmp_path: Path
) -> None:
    times = noisy(lambda at: 0.5 * (factor if 100 <= at < 160 else 1), 300)
    verdict = said(tmp_path, stamped(times, beside=beside))
    assert is_slow(verdict) is slow


@pytest.mark.parametrize(("tokens", "slow"), [(16_384, False), (8192, True)])
def test_steps_that_take_twice_as_long_for_twice_the_tokens_are_no_slowdown(
    tokens: int, *, slow: bool, tmp_path: Path
) -> None:
    rng = random.Random(4)

    def line(at: int) -> str:
        took, held = (0.5, 8192) if at < 150 else (1.0, tokens)
        took *= 1 + rng.gauss(0, 0.02)
        return f"step {at} | loss {3 - at / 250:.4f} | step_time {took:.3f} | tok/s {held / took:.0f}"

    assert is_slow(said(tmp_path, [*map(line, range(1, 301)), DONE])) is slow


#: Seconds per step of a small job whose batches grew from the first record on, one record each five steps.
GROWING = (
    0.0607, 0.0432, 0.0558, 0.0719, 0.0595, 0.0527, 0.0739, 0.0692, 0.0698, 0.0695, 0.075, 0.0884,
    0.0801, 0.0935, 0.1073, 0.1025, 0.1076, 0.1051, 0.1048, 0.1102, 0.0852, 0.1086, 0.105, 0.1041,
)  # fmt: skip


@pytest.mark.parametrize(("tokens", "slow"), [(320, False), (128, True)])
def test_steps_that_grow_with_their_tokens_from_the_first_record_on_are_no_slowdown(
    tokens: int, *, slow: bool, tmp_path: Path
) -> None:
    def line(at: int, took: float) -> str:
        held = (128 + (tokens - 128) * at / 115) * (1.5 if at <= 5 else 1)  # the first batches are full by chance
        return f"step {at} | loss {3 - at / 250:.4f} | step_time {took:.4f} | tok/s {held / took:.0f}"

    assert is_slow(said(tmp_path, [*(line(5 * i, took) for i, took in enumerate(GROWING)), DONE])) is slow


@pytest.mark.parametrize(("climb", "slow"), [(0.0045, True), (0.0004, False)], ids=["to three times", "by a tenth"])
def test_a_clean_climb_of_eighteen_records_is_told_although_they_part_from_their_own_median(
    climb: float, *, slow: bool, tmp_path: Path
) -> None:
    rng = random.Random(4)
    took = [(0.033 + climb * max(0, at - 17)) * (1 + rng.gauss(0, 0.01)) for at in range(34)]
    lines = [f"step {5 * i + 5} | loss {3 - i / 50:.4f} | step_time {one:.4f}" for i, one in enumerate(took)]
    assert is_slow(said(tmp_path, [*lines, DONE])) is slow


@pytest.mark.parametrize(
    ("late", "slow"), [("101101011011010", True), ("000000100000000", False)], ids=["nine of fifteen", "one"]
)
def test_pauses_that_begin_in_a_short_run_are_told_where_they_double_the_time(
    late: str, *, slow: bool, tmp_path: Path
) -> None:
    rng = random.Random(3)
    took = [(0.125 if one == "1" else 0.033) * (1 + rng.gauss(0, 0.01)) for one in "0" * 15 + late]
    lines = [f"step {5 * i + 5} | loss {3 - i / 50:.4f} | step_time {one:.4f}" for i, one in enumerate(took)]
    assert is_slow(said(tmp_path, [*lines, DONE])) is slow


def since_the_start(form: str, *, unit_s: float = 1.0, slower: float = 2.6, first_s: float = 0.0) -> list[str]:
    """A log that prints the time since its start, in whole units, at each fiftieth step."""
    chance, now, lines = random.Random(3), first_s, []
    for at in range(1, 121):
        now += 50 * (1.0 + chance.random() / 30) * (slower if at > 70 else 1.0) * unit_s
        lines.append(form.format(s=50 * at, l=f"{2 + 3 / at + chance.random() / 50:.3f}", t=f"{now / unit_s:.0f}"))
    return [*lines, "Training complete"]


@pytest.mark.parametrize(
    "form",
    [
        "Itr {s} | Loss {l} | Wall {t}s",
        "step {s} loss {l} elapsed {t} s",
        "step {s} loss {l} total time: {t}s",
        "Loss after {s} updates: {l} (time {t}s)",
        '{{"step": {s}, "loss": {l}, "time_elapsed": {t}}}',
    ],
)
def test_a_time_since_the_start_is_a_clock(tmp_path: Path, form: str) -> None:
    verdict = said(tmp_path, since_the_start(form))
    assert (verdict.shape, verdict.onset.step) == (Shape.SLOWDOWN, 3500 + 50)
    assert said(tmp_path / "even", since_the_start(form, slower=1.0)).shape is None


def test_a_time_since_the_start_has_a_unit(tmp_path: Path) -> None:
    verdict = said(tmp_path, since_the_start("step {s} loss {l} elapsed {t} min", unit_s=60.0))
    assert "A step takes 159 s instead of 61.1 s" in verdict.headline


def test_a_time_of_each_step_that_grows_in_every_record_is_no_clock(tmp_path: Path) -> None:
    verdict = said(tmp_path, since_the_start("step {s} loss {l} elapsed {t} s", first_s=4000.0))
    assert verdict.shape is None


def whole_seconds(slower: float) -> list[str]:
    """A hundred records that print the second, the last thirty-seven of them slower."""
    chance, now, lines = random.Random(2), BEGIN, list[str]()
    for at in range(1, 101):
        now += timedelta(seconds=0.8 * (slower if at > 63 else 1.0) * (1 + chance.gauss(0, 0.03)))
        lines.append(f"{now:%Y-%m-%d %H:%M:%S} step {at} loss {2 + 3 / at + chance.random() / 50:.3f}")
    return [*lines, "Training complete"]


def test_few_records_in_whole_seconds_show_a_step_three_times_as_long(tmp_path: Path) -> None:
    assert said(tmp_path, whole_seconds(3.0)).shape is Shape.SLOWDOWN
    assert said(tmp_path / "even", whole_seconds(1.0)).shape is None


def clocks(falls: int) -> list[str]:
    """A log of two GPUs over 200 seconds, of which the second loses its clock `falls` seconds after the begin."""
    head = "timestamp, index, clocks.sm [MHz], clocks_throttle_reasons.active"
    rows = [
        f"{BEGIN + timedelta(seconds=at):%Y/%m/%d %H:%M:%S}.000, {gpu}, "
        + ("705 MHz, 0x0000000000000040" if gpu and at >= falls else "1755 MHz, 0x0000000000000000")
        for at in range(0, 2400, 10)
        for gpu in range(2)
    ]
    return [head, *rows]


@pytest.mark.parametrize(("falls", "cause"), [(600, "thermal_throttling"), (1500, "slow_steps")])
def test_a_clock_that_fell_when_the_steps_became_slower_is_why(falls: int, cause: str, tmp_path: Path) -> None:
    lines = stamped(noisy(lambda at: 2.0 if at < 300 else 3.6, 800))
    report = judged(tmp_path, {"train.log": lines, "gpu.csv": clocks(falls)})
    assert (report.verdict.shape, report.verdict.cause) == (Shape.SLOWDOWN, cause)
    assert ("GPU 1 ran at 705 MHz" in report.verdict.headline) is (cause != "slow_steps")
    assert "log of the GPUs" not in report.coverage.absent
