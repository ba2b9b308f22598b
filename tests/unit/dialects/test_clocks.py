"""Times of day: the date that one line of a log prints tells the day of all others, or no day is told."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest

from forensics.dialects._times import read
from forensics.dialects.clocks import Calendar, calendar_of

STOPPED = "slurmstepd: error: *** JOB 41 ON gpu-3 CANCELLED AT 2026-05-07T03:30:00 DUE TO TIME LIMIT ***"


def log(first: str, minutes: int, form: str = "{t} | r0 | it {n} | loss 2.1") -> list[str]:
    """A line a minute, from a time of day on."""
    began = int(first[:2]) * 60 + int(first[3:])
    times = [divmod((began + n) % 1440, 60) for n in range(minutes)]
    return [form.format(t=f"{hour:02}:{minute:02}:07", n=n) for n, (hour, minute) in enumerate(times)]


def days_of(lines: list[str]) -> list[str]:
    """The day and time of the first and the last line that print a time of day; none where no day is told."""
    text = "\n".join(lines).encode()
    clock = calendar_of(1970, [(0, text)], lines).clock
    if clock is None:
        return []
    at, t_ns = list[int](), list[int]()
    for line in lines:
        if line[:1].isdigit() or line.startswith("["):
            clocked = datetime.fromisoformat(f"1970-01-01 {line.lstrip('[')[:8]}+00:00")
            at, t_ns = [*at, text.index(line.encode())], [*t_ns, round(clocked.timestamp()) * 10**9]
    dated = clock.dated(pl.Series(t_ns), pl.Series(at)).cast(pl.Datetime("ns"))
    return [str(one)[:16] for one in (dated[0], dated[-1])]


@pytest.mark.parametrize("form", ["{t} | r0 | it {n}", "[{t}] INFO it {n}", "[{t},120][rank 3] it {n}"])
def test_the_date_of_a_later_line_is_that_of_the_times_before_it(form: str) -> None:
    assert days_of([*log("01:10", 90, form), STOPPED]) == ["2026-05-07 01:10", "2026-05-07 02:39"]


def test_times_that_pass_midnight_are_of_two_days() -> None:
    assert days_of([*log("21:00", 300), STOPPED]) == ["2026-05-06 21:00", "2026-05-07 01:59"]


def test_a_job_of_two_nights_is_of_three_days() -> None:
    assert days_of([*log("22:00", 1500), STOPPED])[0] == "2026-05-05 22:00"


def test_the_date_of_a_line_above_is_that_of_the_times_behind_it() -> None:
    assert days_of(["started 2026-05-06 20:59:58", *log("21:00", 300)]) == ["2026-05-06 21:00", "2026-05-07 01:59"]


@pytest.mark.parametrize(
    "lines",
    [
        [*log("00:00", 90), STOPPED],
        ["data of 2025-11-02 10:00:00", *log("01:10", 90), STOPPED],
        [f"eta {line}" for line in log("01:10", 90)] + [STOPPED],
        ["started 02.11.2025 10:00:00", *log("01:10", 90)],
    ],
    ids=["since the start", "dates that disagree", "what is left", "a date in another form"],
)
def test_times_of_no_certain_day_are_none(lines: list[str]) -> None:
    assert days_of(lines) == []


def test_a_date_that_cannot_be_that_of_its_place_is_passed_over() -> None:
    lines = log("01:10", 90)
    lines.insert(40, "loaded data/2025-11-02 10:00:00.bin")
    assert days_of([*lines, STOPPED]) == ["2026-05-07 01:10", "2026-05-07 02:39"]


def test_the_times_of_a_log_without_any_date_count_from_1970() -> None:
    assert days_of(log("01:10", 90)) == ["1970-01-01 01:10", "1970-01-01 02:39"]
    assert days_of(log("21:00", 300)) == ["1970-01-01 21:00", "1970-01-02 01:59"]


@pytest.mark.parametrize(
    ("stamp", "day"),
    [
        ("27/11/26 14:22:55", "2026-11-27"),
        ("26/11/27 14:22:55", "2026-11-27"),
        ("11/27/26 14:22:55", "2026-11-27"),
        ("27/11/2026 14:22:55", "2026-11-27"),
        ("11/27/2026 14:22:55", "2026-11-27"),
        ("27.11.2026 14:22:55", "2026-11-27"),
        ("27/11/19 14:22:55", None),
    ],
)
def test_a_date_is_read_in_the_order_in_which_its_year_is_that_of_the_log(stamp: str, day: str | None) -> None:
    found = read(pl.Series([f"{stamp} step 3 loss 0.5"]), Calendar(2026)).cast(pl.Datetime("ns"))[0]
    assert (None if found is None else str(found)[:16]) == (day and f"{day} 14:22")


@pytest.mark.parametrize(
    ("lines", "undated"),
    [
        (["step 3 loss 0.5"] * 9, False),
        (["[   9.3s] step 3 loss 0.5"] * 9, True),
        ([*(["[   9.3s] step 3 loss 0.5"] * 500), *(["02.11.2025 10:00:00 saved"] * 500)], False),
        (["[   9.3s] step 3 loss 0.5", "saved at 2025-11-02 10:00:00"], False),
    ],
    ids=["no time", "no date", "dates further down", "a date"],
)
def test_only_a_log_that_prints_times_is_looked_through_for_dates(lines: list[str], *, undated: bool) -> None:
    assert calendar_of(2025, [(0, "\n".join(lines).encode())], lines).is_undated is undated


@pytest.mark.parametrize("stamp", [f"Fri Jun 18 14:34:09{zone} 2021" for zone in ("", " CET", " CEST")])
def test_a_year_behind_the_time_is_that_of_the_line(stamp: str) -> None:
    for line in (f"[{stamp}] NVRM: Xid (PCI:0000:b3:00): 79", f"{stamp} python invoked oom-killer"):
        [t_ns] = read(pl.Series([line]), Calendar(2031))
        assert datetime.fromtimestamp(t_ns / 1e9, UTC) == datetime(2021, 6, 18, 14, 34, 9, tzinfo=UTC)
    [t_ns] = read(pl.Series(["Jun 18 14:34:09 gpu7 kernel: 2021 pages"]), Calendar(2031))
    assert datetime.fromtimestamp(t_ns / 1e9, UTC).year == 2031


@pytest.mark.parametrize(("printed", "year"), [(3, 2024), (2, 2026)])
def test_stamps_without_a_year_are_of_that_of_the_others(printed: int, year: int) -> None:
    lines = [f"[2024-02-08 03:32:0{n}] iteration {n} loss 2.0" for n in range(printed)]
    lines.append("[rank3]:[E208 03:32:11.104812331 ProcessGroupNCCL.cpp:1182] late")
    assert calendar_of(2026, [(0, "\n".join(lines).encode())], lines).year == year


@pytest.mark.parametrize(("stamp", "year"), [("{}/02/08 03:32:07", 2024), ("1{}-02-08 03:32:07", 2026)])
def test_a_year_of_four_digits_is_one_and_the_end_of_a_longer_number_is_none(stamp: str, year: int) -> None:
    lines = [stamp.format(2024)] * 3
    assert calendar_of(2026, [(0, "\n".join(lines).encode())], lines).year == year


def short(first: int, count: int = 40) -> list[str]:
    """Lines with times of two numbers, 7 of the second number apart."""
    return [f"[{at // 60:02}:{at % 60:02}] step {at} loss 0.5" for at in range(first, first + 7 * count, 7)]


@pytest.mark.parametrize(
    ("first", "second_s"),
    [(0, 1), (299, 1), (300, 60), (545, 60), (1439 - 7 * 39, 60), (1440 - 7 * 39, 0)],
    ids=["from the start", "near the start", "of a day", "of a morning", "until midnight", "beyond any day"],
)
def test_times_of_two_numbers_count_from_the_start_where_they_begin_near_zero(first: int, second_s: int) -> None:
    lines = short(first)
    calendar = calendar_of(1970, [(0, "\n".join(lines).encode())], lines)
    times = read(pl.Series(lines), calendar)
    assert times.diff().drop_nulls().unique().to_list() == ([7 * second_s * 10**9] if second_s else [])


@pytest.mark.parametrize(
    "lines",
    [
        [*short(30, 20), *short(0, 20)],
        short(30, 2),
        ["[03:15] step 1 loss 0.5"] * 40,
        ["2026-05-07 03:30:00", *short(0)],
    ],
    ids=["they fall", "too few", "always the same", "a date"],
)
def test_two_numbers_that_are_no_clock_tell_no_time(lines: list[str]) -> None:
    assert calendar_of(1970, [(0, "\n".join(lines).encode())], lines).short_s == 0


@pytest.mark.parametrize(
    ("line", "time"),
    [
        ("10/30 22:18:02 - mmengine - INFO - Epoch(train) [1][200/735]", "2023-10-30 22:18:02"),
        ("30/10 22:18:02 | step 4", "2023-10-30 22:18:02"),
        ("[10/30 22:18:02 d2.utils.events]: iter: 19", "2023-10-30 22:18:02"),
        ("09-24 22:55:11 Epoch 0/7 itr 104/3489: lr: 0.0001", "2023-09-24 22:55:11"),
        ("INFO 09-24 22:55:11 engine.py:88] step 4", "2023-09-24 22:55:11"),
        ("epoch 10/30 00:12:05 loss 0.4", None),  # the tenth of thirty epochs, and how long it took
        ("1/10/30 22:18:02 of a path", None),
    ],
)
def test_a_month_and_a_day_without_a_year_are_of_the_year_of_the_log(line: str, time: str | None) -> None:
    [told] = read(pl.Series([line]), Calendar(2023)).cast(pl.Datetime("ns")).to_list()
    assert told == (None if time is None else datetime.fromisoformat(time))
